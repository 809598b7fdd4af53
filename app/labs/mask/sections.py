"""Answers of the Mask tab's sections: gaps together, words of several pieces, layer by layer.

Each answer is plain values for the page, with the table (``csv``) and the lines that recompute it
(``code``). The work is done on the model thread, one piece at a time.
"""

import textwrap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from app.labs.mask.pictures import together_svg, word_svg
from app.labs.mask.scene import Scene, check_fills, no_piece, read
from app.serving.ask import clean_words, read_revision
from app.serving.session import Session
from core_models import InputError
from core_models.prediction import (
    Filling,
    lens,
    score_words,
)
from core_models.prediction.gaps import GIVEN, WAYS, Gaps
from viz.layers import Line, ranks
from viz.records import records_csv
from viz.svg import Wording

WIDTH = 5
"""Fillings that a beam keeps and shows."""
MOST_WORK = 1536
"""Most gaps times pieces of a text whose gaps are filled together."""
MOST_RIVALS = 6
MOST_WORDS = 12

Section = Callable[[Session, Mapping[str, Any]], Awaitable[dict[str, Any]]]


async def answer(section: Section, session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A section's answer, or the reason why there is none, with the revision of its question."""
    revision = read_revision(question)
    try:
        return {"rev": revision, "error": None, **await section(session, question)}
    except InputError as error:
        return {"rev": revision, "error": str(error)}


# --- several gaps together -----------------------------------------------------------------


async def together(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """The gaps filled in four ways, and the words of the text for comparison."""
    scene = await read(session, question)
    check_fills(scene.model)
    if (count := len(scene.hidden)) * len(scene.tokens) > MOST_WORK:
        raise InputError(
            f"{count} gaps in {len(scene.tokens)} pieces take too long to fill together: each gap "
            "reads the whole text again. Hide fewer words or use a shorter text."
        )
    unknown = scene.unknown(scene.hidden)
    written = any(gap.written for gap in scene.gaps) or bool(unknown)
    gaps = await session.compute(partial(Gaps, scene.model, scene.ask.text, scene.hidden))
    rounds = gaps.rounds(width=WIDTH, given=None if written else _own_ids(scene))
    # One pass at a time, so that other visitors are answered between them.
    while (found := await session.compute(partial(next, rounds))) is None:
        pass
    ways = [found[way] for way in WAYS]
    (own,) = found.get(GIVEN, [None])
    fillings = [*(filling for found in ways for filling in found), *([own] if own else [])]
    call = f"model, text, masks={scene.hidden}, way=way, width={WIDTH}"
    return {
        "gaps": [gap.to_json() for gap in scene.gaps],
        "ways": [[filling.to_json() for filling in found] for found in ways],
        "own": own.to_json() if own else None,
        "notes": [no_piece(word) for word in dict.fromkeys(unknown)],
        "csv": _together_csv(fillings),
        "svg": together_svg(fillings, scene.ask.text),
        "code": scene.code(
            ["from core_models.prediction import fill_jointly, score_filling"],
            [
                f"for way in {list(WAYS)}:",
                f"    for filling in fill_jointly({call}):",
                "        print(way, [c.display for c in filling.choices], filling.total,",
                "              filling.apart, filling.chained)",
                *([] if written else [f"print(score_filling(model, text, {_own_ids(scene)}))"]),
            ],
        ),
    }


def _own_ids(scene: Scene) -> dict[int, int]:
    return {position: scene.encoding.ids[position] for position in scene.hidden}


def _together_csv(fillings: Sequence[Filling]) -> str:
    header = ("way", "filling", "turn", "position", "piece", "log_probability", "whole_in_order")
    rows = [
        (
            filling.way,
            number,
            turn,
            choice.position,
            choice.piece,
            choice.log_probability,
            filling.total,
            filling.apart,
            filling.chained,
        )
        for number, filling in enumerate(fillings, start=1)
        for turn, choice in enumerate(filling.choices, start=1)
    ]
    return records_csv((*header, "whole_apart", "whole_left_to_right"), rows)


# --- a word of several pieces --------------------------------------------------------------


async def word(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Words of any length in one gap; the word of the text comes along."""
    scene = await read(session, question)
    check_fills(scene.model)
    gap = scene.gap(question.get("at"))
    asked = clean_words(question.get("rivals", ()))[:MOST_WORDS]
    own = () if gap.written else (gap.text,)
    words = tuple(dict.fromkeys((*own, *asked)))
    hidden = scene.others(gap)
    find = partial(
        score_words, scene.model, scene.ask.text, words, gap=gap.positions, hidden=hidden
    )
    found = await session.compute(find)
    rows = [
        (entry.word, turn, piece, step, entry.log_probability)
        for entry in found
        for turn, (piece, step) in enumerate(zip(entry.pieces, entry.steps, strict=False), start=1)
    ]
    header = ("word", "turn", "piece", "log_probability", "whole")
    call = f"model, text, {list(words)!r}, gap={list(gap.positions)}, hidden={hidden}"
    return {
        **scene.chooser(gap),
        "own": own[0] if own else None,
        "words": [entry.to_json() for entry in found],
        "csv": records_csv(header, rows),
        "svg": word_svg(found, own[0] if own else None, scene.ask.text),
        "code": scene.code(
            ["from core_models.prediction import score_words"],
            [f"for word in score_words({call}):", "    print(word)"],
        ),
    }


# --- layer by layer ------------------------------------------------------------------------


async def layers(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """The rank of some words after every layer: the best two, the text's own, the visitor's."""
    scene = await read(session, question)
    check_fills(scene.model)
    position = scene.single(question.get("at"))
    asked = clean_words(question.get("rivals", ()))[:MOST_RIVALS]
    masks = [p for p in scene.hidden if p != position]
    look = partial(lens, scene.model, scene.ask.text, position, masks=masks)
    last = (await session.compute(partial(look, top_k=2))).layers[-1].prediction
    best = [candidate.piece for candidate in last.candidates]
    result = await session.compute(partial(look, watch=[*asked, *best], top_k=3))
    unknown = scene.unknown([position])
    lines = _lines([row.prediction for row in result.layers], len(asked), own=not unknown)
    names = [_layer_name(row.stream, row.number) for row in result.layers]
    call = f"model, text, {position}, masks={masks}, watch={[*asked, *best]!r}"
    chart = ranks(
        [_line(line) for line in lines],
        [_layer_wording(name) for name in names],
        [row.prediction.candidates[0].display for row in result.layers],
        vocabulary=scene.model.tokenizer.vocabulary,
        title=Wording("{0}: {1}", scene.ask.model, _with_gaps(scene, position)),
    )
    watched = [entry.note for entry in result.layers[-1].prediction.watched if entry.note]
    return {
        "gaps": [{"positions": [p], "text": scene.tokens[p].text} for p in scene.hidden],
        "at": position,
        "said": _settled(next(line for line in lines if "best" in line["kinds"]), names),
        "lines": lines,
        "names": names,
        "shown": [chart],
        "notes": [*([result.note] if result.note else []), *map(no_piece, unknown), *watched],
        "code": scene.code(
            ["from core_models.prediction import lens"],
            [
                f"for layer in lens({call}).layers:",
                "    prediction = layer.prediction",
                "    print(layer.stream, layer.number, prediction.candidates[0].display,",
                "          [(word.word, word.rank) for word in prediction.watched])",
            ],
        ),
    }


def _settled(line: Mapping[str, Any], names: Sequence[str]) -> Wording:
    """From which layer on a word is the first."""
    late = [number for number, rank in enumerate(line["ranks"], start=1) if rank != 1]
    first = late[-1] if late else 0
    if first == 0:
        return Wording("“{0}” is first from the start.", line["word"])
    if first >= len(names) - 1:
        return Wording("“{0}” is not settled before the last layer.", line["word"])
    name = names[first]
    layer = Wording("layer {0}", name) if name.isdigit() else _layer_wording(name)
    return Wording("“{0}” is first from {1} on.", line["word"], layer)


def _with_gaps(scene: Scene, position: int) -> str:
    """The text with [?] for the gap that is looked at, and [MASK] for others."""
    hidden = set(scene.hidden)
    words = [
        "[?]" if n == position else "[MASK]" if n in hidden else token.text
        for n, token in enumerate(scene.tokens)
        if not token.special
    ]
    return textwrap.shorten(" ".join(words), 90, placeholder=" …")


def _line(line: Mapping[str, Any]) -> Line:
    kind = next(kind for kind in ("own", "best", "rival", "second") if kind in line["kinds"])
    ranks, chances = line["ranks"], line["probabilities"]
    return Line(word=line["word"], kind=kind, ranks=ranks, probabilities=chances)


def _layer_wording(name: str) -> str:
    if name == "input":
        return Wording("input")
    _, _, number = name.partition(" ")
    return Wording("decoder {0}", number) if number else name


def _lines(predictions: Sequence[Any], asked: int, *, own: bool) -> list[dict[str, Any]]:
    """One line for each piece: the visitor's words, the best of the last layer, the text's own."""
    lines: dict[int, dict[str, Any]] = {}

    def add(kind: str, entries: Sequence[Any]) -> None:
        first = entries[-1]
        if first is None or first.id is None:
            return
        line = lines.setdefault(
            first.id,
            {
                "word": first.display,
                "piece": first.piece,
                "kinds": [],
                "ranks": [entry.rank for entry in entries],
                "probabilities": [entry.probability for entry in entries],
            },
        )
        line["kinds"].append(kind)

    count = len(predictions[0].watched)
    for number in range(asked, count):
        add("best" if number == asked else "second", [p.watched[number] for p in predictions])
    if own:
        add("own", [p.original for p in predictions])
    for number in range(asked):
        add("rival", [p.watched[number] for p in predictions])
    return list(lines.values())


def _layer_name(stream: str, number: int) -> str:
    if stream == "mask_decoder":
        return f"decoder {number}"
    return "input" if number == 0 else str(number)
