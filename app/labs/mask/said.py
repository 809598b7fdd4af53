"""What the folds of the Mask lab say and draw of their answers. No Gradio in it."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from app.parts.plain import sentences
from app.serving.opened.suggestions import Suggestion
from core_models.prediction import Filling, WordScore
from viz import gaps
from viz.gaps import chance
from viz.svg import LETTER, Wording, listed, shorten, text_width

MOST_LETTERS = 90
"""Of a text in the title of its chart."""
WAYS = {
    "independent": Wording("Independent"),
    "left_to_right": Wording("Left to right"),
    "most_confident": Wording("Surest first"),
    "beam": Wording("Beam"),
    "given": Wording("Your words"),
}
"""How gaps were filled together."""
SEES = {
    "masked": Wording("Sees both sides of the gap at once."),
    "order": Wording(
        "Predicts in an order, with this gap last: a query knows where the gap is and every word "
        "that is not hidden."
    ),
    "causal": Wording("Sees only what stands to the left of the gap."),
    "before": Wording(
        "Sees both sides of the gap at once; the answer is told from the place before it."
    ),
}
ONE_SIDED = Wording(
    "The same gap, but not the same question: the model that reads from the left must guess before "
    "it has read the rest, the others may use what follows."
)
LACKING = Wording(
    "No model that reads from the left is installed to compare with. Train one on the Train tab, "
    "or run {0}",
    "python -m zoo build causal-mini",
)
LONG = Wording(
    "The words of this text are not scored: it has more than 64 pieces, and each would be a copy "
    "of the text."
)


def parent(found: Suggestion) -> str:
    """The published checkpoint of a model's kind, with its size."""
    return Wording(
        "Published of this kind: {0}, {1} million parameters, {2} MB.",
        found.name,
        f"{found.millions:g}",
        f"{found.megabytes:,}",
    )


def words_of(filling: Filling) -> str:
    """The words of a filling in the order of the text, with their turns where these differ."""
    turns = {choice.position: turn for turn, choice in enumerate(filling.choices, start=1)}
    in_text = sorted(filling.choices, key=lambda choice: choice.position)
    moved = list(turns) != [choice.position for choice in in_text]
    small = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    return " … ".join(
        choice.display + (str(turns[choice.position]).translate(small) if moved else "")
        for choice in in_text
    )


def _phrase(filling: Filling) -> str:
    in_text = sorted(filling.choices, key=lambda choice: choice.position)
    return f"“{' … '.join(choice.display for choice in in_text)}”"


def together(ways: Sequence[Sequence[Filling]]) -> str:
    """Whether filling each gap alone misses something."""
    alone = ways[0][0]
    if len(alone.choices) < 2:
        return Wording("With one gap all ways agree. Hide a second word to see them differ.")
    best = max((each for found in ways for each in found), key=lambda each: each.chained)
    read = _phrase(alone)
    if {c.position: c.id for c in best.choices} == {c.position: c.id for c in alone.choices}:
        return Wording(
            "Filled independently the gaps read {0}, and no way finds anything better: here the "
            "gaps hardly depend on each other.",
            read,
        )
    numbers = (chance(alone.apart), chance(alone.chained), _phrase(best), chance(best.chained))
    if len(alone.choices) == 2:
        return Wording(
            "Filled independently the gaps read {0}. Each word is the best for its own gap, and "
            "independence gives the pair {1}; but asked with the first word in place, the model "
            "gives it {2}. {3} has {4}.",
            read,
            *numbers,
        )
    return Wording(
        "Filled independently the gaps read {0}. Each word is the best for its own gap, and "
        "independence gives the whole {1}; but asked with the earlier words in place, the model "
        "gives it {2}. {3} has {4}.",
        read,
        *numbers,
    )


def kept(beam: Sequence[Filling], own: Filling | None) -> list[str]:
    """What else a beam has kept, where there are words to compare it with."""
    if len(beam) < 2 or own is None or len(own.choices) < 2:
        return []
    others = listed(f"{_phrase(each)} {chance(each.chained)}" for each in beam[1:])
    return [Wording("The beam also kept {0}.", others)]


def fillings(found: Sequence[Filling], text: str) -> go.Figure:
    """What each way of filling costs."""
    filled = [
        gaps.Filled(
            way=WAYS[each.way], words=words_of(each), apart=each.apart, chained=each.chained
        )
        for each in found
    ]
    return gaps.fillings(filled, title=_titled(Wording("Ways to fill the gaps"), text))


def _titled(what: str, text: str) -> str:
    """What is shown, and of which text."""
    # No more letters than fit are looked at: each that is left out is one more try.
    line = " ".join(text.split())[: MOST_LETTERS + 1]
    begun = shorten(line, lambda each: text_width(each) <= MOST_LETTERS * LETTER)
    return Wording("{0}: {1}", what, begun)


def spelled(found: Sequence[WordScore], own: str | None, text: str) -> tuple[str, go.Figure | None]:
    """What words cost piece by piece, in a sentence and as a chart; those without a piece not."""
    known = [each for each in found if each.log_probability is not None and each.steps]
    known.sort(key=lambda each: -(each.log_probability or 0.0))
    if not known:
        return "", None
    said = ""
    if long := next((each for each in known if len(each.pieces) > 1), None):
        least = min(range(len(long.steps)), key=long.steps.__getitem__)
        said = Wording(
            "“{0}” is {1} pieces here: {2}. The model is surprised most by “{3}” ({4}).",
            long.word,
            len(long.pieces),
            " · ".join(long.pieces),
            long.pieces[least],
            chance(long.steps[least]),
        )
    bars = [
        gaps.Spelled(word=each.word, pieces=each.pieces, steps=each.steps, own=each.word == own)
        for each in known
    ]
    return said, gaps.spelled(bars, title=_titled(Wording("Words in this gap"), text))


def of_model(entry: Mapping[str, Any]) -> list[Any]:
    """What is shown of a model on a gap: its answers, what it sees, and the map of that."""
    title = _title(entry)
    if entry["error"]:
        return [None, entry["error"], None]
    found = [
        gaps.Answer(word=f"{n}  {each['word']}", log=each["total"])
        for n, each in enumerate(entry.get("fillings") or (), start=1)
    ]
    if entry.get("own") is not None:
        found.append(gaps.Answer(word=Wording("yours"), log=entry["own"], own=True))
    if not found:
        return [None, Wording("{0}: {1}", title, SEES[entry["kind"]]), None]
    pieces = len(entry["gap"]["positions"])
    text = "The gap is {0} pieces here, which need not make one word."
    looks = knows(entry["sight"])
    return [
        gaps.answers(found, title=title),
        sentences(
            SEES[entry["kind"]],
            entry["note"],
            Wording(text, pieces) if pieces > 1 else None,
            looks,
        ),
        gaps.sight(
            cut_names(entry["sight"]),
            entry["sight"]["seen"],
            gap=entry["sight"]["gap"],
            read=entry["sight"]["read"],
            said=looks,
        ),
    ]


def cut_names(sight: Mapping[str, Any]) -> list[str]:
    """The words of a grid, with an ellipsis where words before or after them are left out."""
    names = list(sight["names"])
    before, after = sight["cut"]
    names[0] = f"… {names[0]}" if before else names[0]
    names[-1] = f"{names[-1]} …" if after else names[-1]
    return names


def knows(sight: Mapping[str, Any]) -> str:
    """What a model knows when it predicts a gap."""
    names, read, gap = sight["names"], sight["read"], sight["gap"]
    row, (before, after) = sight["reads"], sight["cut"]
    words = [f"“{name}”" for n, name in enumerate(names) if row[n] and n != gap]
    known = [*(["…"] if before and words else []), *words, *(["…"] if after and row[-1] else [])]
    if read is None and not known:
        return Wording(
            "The prediction is read before the first word: nothing of the sentence is known yet."
        )
    if read is None:
        text = "The prediction is read before the first word, from where the model looks at {0}."
        return Wording(text, listed(known))
    place = f"“{names[read]}”"
    if not known:
        return Wording("The prediction is read at {0}, which looks at no word.", place)
    if read == gap:
        text = "The prediction is read at the gap, which looks at {0}."
        return Wording(text, listed(known))
    text = "The prediction is read at {0}, just before the gap, which looks at {1}."
    return Wording(text, place, listed(known))


def each_word(found: Sequence[Mapping[str, Any]], words: Sequence[str]) -> go.Figure | None:
    """How much each word of the sentence surprises the models that have scored it."""
    scored = [entry for entry in found if entry.get("words")]
    if not scored or not words:
        return None
    return gaps.each_word(
        words,
        dict(zip(_told_apart(scored), (entry["words"] for entry in scored), strict=True)),
        [rough(entry["perplexity"]) for entry in scored],
    )


def _told_apart(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Titles of models; those of one title bear their names, too."""
    titles = [_title(entry) for entry in found]
    count = Counter(titles)
    return [
        f"{title} ({entry['name']})" if count[title] > 1 else title
        for title, entry in zip(titles, found, strict=True)
    ]


def _title(entry: Mapping[str, Any]) -> str:
    return str(entry["title"]).partition(" · ")[0]


def rough(value: float | None) -> str:
    """A perplexity as people read it."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    if value < 100:
        return f"{value:.2f}"
    return f"{value:,.0f}" if value < 1e7 else Wording("over 10 million")
