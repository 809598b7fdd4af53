"""The Mask lab's fold of several models on one gap, each through its own head and vocabulary."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import core_models as cm
from app.labs.mask import said
from app.labs.mask.scene import (
    Gap,
    Scene,
    check_fills,
    in_other_pieces,
    no_piece,
    per_word,
    read,
    words_of,
)
from app.labs.mask.sight import sight
from app.parts.plain import sentences
from app.serving.names import HUB_PREFIX
from app.serving.opened.suggestions import Suggestion, parent_of
from app.serving.pieces import blank_note
from app.serving.session import Session
from core_models import InputError
from core_models.prediction import Filling, score
from core_models.prediction.gaps import GIVEN, MAX_GAPS, Gaps
from core_models.prediction.passes import kind_of
from viz.svg import Wording

WIDTH = 5
MOST_MODELS = 4
MOST_SCORED = 64
"""Most pieces of a text whose words are scored: each piece is a copy of the text."""
WORDS_BYTES = 32 * MOST_SCORED


async def models(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Up to four models on the same gap, and what each makes of every word of the sentence."""
    scene = await read(session, question)
    gap = scene.gap(question.get("at")) if scene.gaps else None
    choices = await asyncio.to_thread(session.choices)  # reads the folder of each run
    titles = {name: title for title, name in choices}
    names = _chosen(session, [*titles], question.get("models"), scene.ask.model)
    words = words_of(scene.ask.text)
    found = [
        {
            "name": name,
            "title": titles.get(name, name),
            **await _of_model(session, name, scene, gap),
        }
        for name in names
    ]
    shown = [scene.ask.text[start:end] for start, end in words]
    kinds = {entry.get("kind") for entry in found} - {None}
    parent = await asyncio.to_thread(_parent, session, scene.ask.model)
    if parent and HUB_PREFIX + parent.name in names:
        parent = None
    notes = [
        None if any(_leftward(info) for info in session.models()) else said.LACKING,
        None if gap else Wording("Hide a word to see each model's answer for it."),
        said.LONG if any(not e["error"] and not e["words"] for e in found) else None,
    ]
    return {
        **(scene.chooser(gap) if gap else {"gaps": [], "at": None}),
        "choices": [(title.partition(" · ")[0], name) for title, name in choices],
        "models": found,
        "parent": parent and {"name": parent.name, "beside": scene.ask.model},
        "words": shown,
        "said": sentences(
            said.ONE_SIDED if "causal" in kinds and len(kinds) > 1 else None,
            said.parent(parent) if parent else None,
        ),
        "notes": [note for note in notes if note],
        "code": _models_code(session, scene, found),
    }


def _leftward(info: cm.ModelInfo) -> bool:
    return kind_of(info.heads, leftward=info.left_to_right) == "causal"


def _chosen(session: Session, known: list[str], wanted: Any, current: str) -> list[str]:
    """The models asked for; else the bar's own and one that reads another way.

    Rather one of the same family: the causal twin beside the BERT that it is the twin of.
    """
    if wanted and (not isinstance(wanted, list) or len(wanted) > MOST_MODELS):
        raise InputError(f"Choose at most {MOST_MODELS} models.")
    # A link may name models that are no longer here, and no other.
    if found := [name for name in dict.fromkeys(map(str, wanted or ())) if name in known]:
        return found
    family = {info.name: info.family for info in session.models()}
    kinds = {
        info.name: kind_of(info.heads, leftward=info.left_to_right) for info in session.models()
    }
    able = [(name, kind) for name, kind in kinds.items() if kind and name != current]
    order = ["causal", "masked", "before", "order"]
    able.sort(
        key=lambda each: (
            each[1] == kinds.get(current),
            order.index(each[1]),
            family[each[0]] != family.get(current),
        )
    )
    return [current, *(name for name, _ in able[:1])]


def _parent(session: Session, name: str) -> Suggestion | None:
    """The published parent of an installed model; None = it has none, or none may be opened."""
    info = next((info for info in session.models() if info.name == name), None)
    if info is None or session.opened is None:
        return None
    found = parent_of(info.family, info.heads, session.card(name)["language"])
    if found is None or not session.opened.policy.allows(found.name):
        return None
    return found


async def _of_model(session: Session, name: str, scene: Scene, gap: Gap | None) -> dict[str, Any]:
    """One model's answers; an error of its own does not touch the others."""
    try:
        model = await asyncio.to_thread(session.model, name)
        check_fills(model)
        kind = kind_of(model.heads, leftward=model.config.left_to_right)
        filled = (
            await session.compute(partial(_fill_gap, model, scene, gap), model)
            if gap
            else {"gap": None}
        )
        text = scene.ask.text
        scored = await session.compute_once(
            ("words", text, session.number(model)),
            partial(_word_scores, model, text),
            WORDS_BYTES,
            model,
        )
    except InputError as error:
        return {"error": str(error)}
    return {"error": None, "kind": kind, **filled, **scored}


def _fill_gap(model: cm.Model, scene: Scene, gap: Gap) -> dict[str, Any]:
    """The best fillings of one gap, as words, and the text's own."""
    text, mine, others = in_other_pieces(scene, gap, model)
    if len(mine) > MAX_GAPS:
        raise InputError(f"“{gap.text}” is {len(mine)} pieces here; at most {MAX_GAPS} fit.")
    encoding = model.encode([text])[0]
    ids = encoding.ids
    unknown = model.tokenizer.unknown_id in [ids[p] for p in mine]
    given = None if gap.written or unknown else {p: ids[p] for p in mine}
    *_, found = Gaps(model, text, mine, others).rounds(("beam",), width=WIDTH, given=given)
    assert found is not None
    return {
        "gap": {"text": text, "positions": mine, "hidden": others},
        "fillings": [
            {"word": readable(filling), "total": filling.total} for filling in found["beam"]
        ],
        "own": found[GIVEN][0].total if given else None,
        "note": no_piece(gap.text) if unknown else blank_note(encoding, model),
        "sight": sight(model, text, mine, others),
    }


def readable(filling: Filling) -> str:
    """The pieces of one gap as a word."""
    parts = [
        ("" if number == 0 or choice.continues else " ") + choice.display
        for number, choice in enumerate(filling.choices)
    ]
    return ("-" if filling.choices[0].continues else "") + "".join(parts)


def _word_scores(model: cm.Model, text: str) -> dict[str, Any]:
    """Log-probability of each word in nats, and the geometric mean of 1 / p."""
    encoding = model.encode([text])[0]
    if len(encoding) > MOST_SCORED:
        return {"words": None, "perplexity": None}
    (result,) = score(model, [text])
    values = per_word(result, encoding, words_of(text), model.tokenizer.unknown_id)
    known = [value for value in values if value is not None]
    mean = math.fsum(known) / len(known) if known else None
    return {"words": values, "perplexity": None if mean is None else math.exp(min(-mean, 700.0))}


def _models_code(session: Session, scene: Scene, found: Sequence[Mapping[str, Any]]) -> str:
    lines = ["import core_models as cm", "from core_models.prediction import fill_jointly, score"]
    for entry in found:
        if entry["error"]:
            continue
        lines += ["", f"model = cm.load({session.loadable(entry['name'])!r})"]
        if gap := entry["gap"]:
            lines += [
                f"for filling in fill_jointly(model, {gap['text']!r}, masks={gap['positions']},",
                f"                            hidden={gap['hidden']}, way='beam', width={WIDTH}):",
                "    print([choice.display for choice in filling.choices], filling.total)",
            ]
        lines.append(f"print(score(model, [{scene.ask.text!r}])[0].per_token)")
    return "\n".join(lines)
