"""Answers of the Mask lab's folds: gaps together, words of several pieces, layer by layer.

Each answer has what is said and shown (:data:`app.labs.mask.folds.Section`), the numbers behind it,
and the lines that recompute it. The work is done on the model thread, one piece at a time.
"""

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from app.labs.mask import said
from app.labs.mask.scene import Gap, Scene, check_fills, no_piece, read
from app.serving.ask import clean_words
from app.serving.session import Session
from core_models import InputError
from core_models.prediction import WordScore, lens, score_filling, score_words
from core_models.prediction.gaps import GIVEN, MAX_GAPS, WAYS, Gaps
from viz.layers import Line, ranks
from viz.svg import Wording

WIDTH = 5
"""Fillings that a beam keeps and shows."""
MOST_WORK = 1536
"""Most gaps times pieces of a text whose gaps are filled together."""
MOST_RIVALS = 6
MOST_WORDS = 12

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
    gaps = await session.compute(
        partial(Gaps, scene.model, scene.ask.text, scene.hidden), scene.model
    )
    rounds = gaps.rounds(width=WIDTH, given=None if written else _own_ids(scene))
    # One pass at a time, so that other visitors are answered between them.
    while (found := await session.compute(partial(next, rounds), scene.model)) is None:
        pass
    ways = [found[way] for way in WAYS]
    (own,) = found.get(GIVEN, [None])
    fillings = [*(found[0] for found in ways), *([own] if own else [])]
    call = f"model, text, masks={scene.hidden}, way=way, width={WIDTH}"
    return {
        "gaps": [],
        "ways": [[filling.to_json() for filling in found] for found in ways],
        "own": own.to_json() if own else None,
        "at": None,
        "said": said.together(ways),
        "shown": [said.fillings(fillings, scene.ask.text)],
        "notes": [*said.kept(ways[-1], own), *map(no_piece, dict.fromkeys(unknown))],
        "code": scene.code(
            session,
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
    return _ids(scene, scene.hidden)


def _ids(scene: Scene, positions: Sequence[int]) -> dict[int, int]:
    return {position: scene.encoding.ids[position] for position in positions}


# --- a word of several pieces --------------------------------------------------------------


async def word(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Words of any length in one gap; the word of the text comes along."""
    scene = await read(session, question)
    check_fills(scene.model)
    gap = scene.gap(question.get("at"))
    asked = clean_words(question.get("rivals", ()))[:MOST_WORDS]
    own = None if gap.written else gap.text
    ids = _ids(scene, gap.positions) if own is not None and _other_pieces(scene, gap) else {}
    words = tuple(dict.fromkeys([*([own] if own is not None else []), *asked]))[bool(ids) :]
    hidden = scene.others(gap)
    find = partial(
        score_words, scene.model, scene.ask.text, words, gap=gap.positions, hidden=hidden
    )
    found = await session.compute(find, scene.model)
    if ids:
        score = partial(_own_score, scene, gap, ids)
        found = [await session.compute(score, scene.model), *found]
    told, chart = said.spelled(found, own, scene.ask.text)
    call = f"model, text, {list(words)!r}, gap={list(gap.positions)}, hidden={hidden}"
    kept = f"print(score_filling(model, text, {ids}, hidden={hidden}))"
    return {
        **scene.chooser(gap),
        "own": own,
        "words": [entry.to_json() for entry in found],
        "said": told,
        "shown": [chart],
        "notes": [entry.note for entry in found if entry.note],
        "code": scene.code(
            session,
            [f"from core_models.prediction import {'score_filling, ' if ids else ''}score_words"],
            [
                *([kept] if ids else []),
                f"for word in score_words({call}):",
                "    print(word)",
            ],
        ),
    }


def _other_pieces(scene: Scene, gap: Gap) -> bool:
    """Whether other pieces stand in a gap than its letters are inside a sentence.

    So it is with a part of a word, with a mark, and in many vocabularies with the first word.
    """
    tokenizer, ids = scene.model.tokenizer, [*_ids(scene, gap.positions).values()]
    return tokenizer.unknown_id not in ids and ids != tokenizer.pieces_of(gap.text)


def _own_score(scene: Scene, gap: Gap, ids: Mapping[int, int]) -> WordScore:
    """The word of the text as `score_words` would score it, in the pieces that stand there."""
    pieces = tuple(scene.model.tokenizer.display(index) for index in ids.values())
    if len(ids) > MAX_GAPS:
        note = f"“{gap.text}” is {len(ids)} pieces here; at most {MAX_GAPS} fit."
        return WordScore(gap.text, pieces, note=note)
    found = score_filling(scene.model, scene.ask.text, ids, hidden=scene.others(gap))
    steps = tuple(choice.log_probability for choice in found.choices)
    return WordScore(gap.text, pieces, steps, found.total)


# --- layer by layer ------------------------------------------------------------------------


async def layers(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """The rank of some words after every layer: the best two, the text's own, the visitor's."""
    scene = await read(session, question)
    check_fills(scene.model)
    position = scene.single(question.get("at"))
    asked = clean_words(question.get("rivals", ()))[:MOST_RIVALS]
    masks = [p for p in scene.hidden if p != position]
    look = partial(lens, scene.model, scene.ask.text, position, masks=masks)
    last = (await session.compute(partial(look, top_k=2), scene.model)).layers[-1].prediction
    best = [candidate.id for candidate in last.candidates]
    result = await session.compute(partial(look, watch=[*asked, *best], top_k=3), scene.model)
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
            session,
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
