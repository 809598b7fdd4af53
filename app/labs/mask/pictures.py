"""The candidates of the Mask lab as SVG: bars as long as the probabilities they stand for."""

from app.labs.mask.scene import NOTHING, Scene
from core_models import InputError
from core_models.prediction import FillResult
from viz.bars import Bar, Group, bars_svg
from viz.svg import Wording

WRITTEN = Wording("Gap in the text")
READING = Wording("Each number is the rank of a word; orange is the word of the sentence.")


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
