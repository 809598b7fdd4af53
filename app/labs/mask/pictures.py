"""Pictures of what the Mask tab shows, as SVG: bars as long as the probabilities they stand for."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from app.labs.mask.scene import NOTHING, Gap, Scene
from core_models import InputError
from core_models.prediction import Filling, FillResult, WordScore
from viz.bars import Bar, Group, bars_svg, stacked_svg
from viz.permutation import Mask, masks_svg
from viz.svg import Wording

LEAST = math.log(1e-5)
"""Below this a probability is shown as a power of ten."""
WAYS = {
    "independent": Wording("Independent"),
    "left_to_right": Wording("Left to right"),
    "most_confident": Wording("Surest first"),
    "beam": Wording("Beam"),
    "given": Wording("Your words"),
}
"""How gaps were filled together, as the page calls it."""


WRITTEN = Wording("Gap in the text")
READING = Wording("Each number is the rank of a word; orange is the word of the sentence.")


def share(log: float) -> float:
    """A probability from its natural logarithm."""
    return math.exp(min(log, 0.0))


def chance(log: float) -> str:
    """A probability as people read it, however small."""
    if log > LEAST:
        return page_percent(share(log))
    power = math.floor(log / math.log(10))
    raised = str(-power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{math.exp(log - power * math.log(10)):.1f} × 10⁻{raised}"  # noqa: RUF001


def page_percent(share: float) -> str:
    """A probability with the digits of the page's cards (``format.percent`` in shell.js)."""
    value = share * 100
    for least, digits in ((99.9995, 0), (99.95, 2), (1, 1), (0.1, 2), (0.001, 3)):
        if value >= least:
            return f"{value:.{digits}f} %"
    return "< 0.001 %"


def predictions_svg(result: FillResult, scene: Scene) -> str:
    """The candidates of every gap; InputError where nothing is hidden."""
    if not result.predictions:
        raise InputError(NOTHING)
    groups = []
    for prediction in result.predictions:
        # Who has no piece for a word has neither its rank nor its probability.
        unknown = scene.tokens[prediction.position].unknown
        own = None if unknown else prediction.original
        best = list(prediction.candidates)
        if own and own.id not in [candidate.id for candidate in best]:
            best.append(own)
        bars = [
            Bar(
                label=f"{candidate.rank:,}  {candidate.display}",
                share=candidate.probability,
                shown=page_percent(candidate.probability),
                loud=bool(own) and candidate.id == own.id,
            )
            for candidate in best
        ]
        word = scene.tokens[prediction.position].text
        groups.append(
            Group(
                title=Wording("In place of “{0}”", word) if prediction.original else WRITTEN,
                bars=bars,
            )
        )
    title = Wording("What {0} puts into the gaps", scene.ask.model)
    return bars_svg(groups, title=title, lines=[scene.ask.text, READING])


def together_svg(fillings: Sequence[Filling], text: str) -> str:
    """Fillings of several gaps, beside the best of them."""
    best = max(filling.chained for filling in fillings)
    bars = [
        Bar(
            label=" … ".join(
                choice.display for choice in sorted(filling.choices, key=lambda c: c.position)
            ),
            share=share(filling.chained - best),
            shown=Wording("{0}  {1}", chance(filling.chained), WAYS[filling.way]),
            loud=filling.way == "given",
        )
        for filling in fillings
    ]
    return bars_svg([Group(title=Wording("Filled together"), bars=bars)], title=text)


def word_svg(found: Sequence[WordScore], own: str | None, text: str) -> str | None:
    """Words of any length in one gap, beside the best of them; None where none is known."""
    known = [entry for entry in found if entry.log_probability is not None]
    if not known:
        return None
    best = max(entry.log_probability for entry in known)
    bars = [
        Bar(
            label=" · ".join(entry.pieces) if len(entry.pieces) > 1 else entry.word,
            share=share(entry.log_probability - best),
            shown=chance(entry.log_probability),
            loud=entry.word == own,
        )
        for entry in known
    ]
    return bars_svg([Group(title=Wording("Words in this gap"), bars=bars)], title=text)


def _cut_names(sight: Mapping[str, Any]) -> list[str]:
    """The words of a grid, with an ellipsis where words before or after them are left out."""
    names = list(sight["names"])
    before, after = sight["cut"]
    names[0] = f"… {names[0]}" if before else names[0]
    names[-1] = f"{names[-1]} …" if after else names[-1]
    return names


def models_svg(found: Sequence[Mapping[str, Any]], scene: Scene, gap: Gap | None) -> str | None:
    """The answers as bars, and below them who looks at whom; None without a gap."""
    groups = [
        Group(
            title=entry["name"],
            bars=[
                Bar(
                    label=filling["word"],
                    share=share(filling["total"]),
                    shown=chance(filling["total"]),
                )
                for filling in entry["fillings"]
            ],
        )
        for entry in found
        if entry.get("fillings")
    ]
    if not groups or gap is None:
        return None
    lines = [WRITTEN if gap.written else Wording("In place of “{0}”", gap.text)]
    if others := [each.text for each in scene.gaps if each != gap]:
        lines.append(Wording("Also hidden: {0}", ", ".join(others)))
    looks = [entry for entry in found if entry.get("sight")]
    masks = [
        masks_svg(
            [
                Mask(
                    title=entry["name"],
                    rows=range(len(entry["sight"]["names"])),
                    seen=entry["sight"]["seen"],
                    hidden=entry["sight"]["gap"],
                )
            ],
            _cut_names(entry["sight"]),
            title=Wording("Who looks at whom"),
        )
        for entry in looks
    ]
    return stacked_svg([bars_svg(groups, title=scene.ask.text, lines=lines), *masks])
