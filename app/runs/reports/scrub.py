"""One sentence at one snapshot of a run: what it says, what it doubts, and where it looks.

The slider of the Train tab asks this for every snapshot and for the newest model. No Gradio in it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import core_models as cm
from app.runs.runs import Runs
from app.serving.ask import Ask, clean_text, clean_words, whole_number
from app.serving.passes import check_maps
from app.serving.pieces import sentence_tokens
from app.serving.session import Session
from core_models import InputError, prediction

LAST = "last"
"""The step of the newest model: the finished one, or that of the last checkpoint."""
MOST_STEP = 2**53
MOST_POSITIONS = 40
"""Rows and columns of a map that are sent; a page has no room for more."""


async def guess(session: Session, runs: Runs, run: str, values: Mapping[str, Any]) -> Any:
    """What a snapshot makes of a text.

    Args:
        session: computes on its model thread.
        runs: the runs folder.
        run: of a pretraining.
        values: ``step`` (of a snapshot, or "last"), ``text``, ``words`` to follow in the first gap,
            and ``attention`` {layer, head}, where a map is wanted: null for the last layer, and for
            the mean of all heads.

    Raises:
        InputError: a value cannot be used, or there is no such snapshot.
    """
    wanted = values.get("step")
    step = wanted if wanted == LAST else whole_number(wanted, "step", 0, MOST_STEP)
    ask = Ask(
        text=clean_text(values.get("text")),
        model=f"run/{run}" if step == LAST else f"run/{run}/step-{step}",
        words=clean_words(values.get("words", ())),
    )
    model = await asyncio.to_thread(session.model, ask.model)
    found: dict[str, Any] = {"step": step, "predictions": []}
    if "replaced_token" in model.heads:
        judged = await session.compute(lambda: prediction.detect(model, ask.text), model)
        found["verdicts"] = [
            {"text": verdict.display, "probability": verdict.probability}
            for verdict in judged.verdicts
            if not verdict.special
        ]
    else:
        result = await session.fill(ask)
        found["predictions"] = [each.to_json() for each in result.predictions]
    if (place := values.get("attention")) is not None:
        layer, head = _place(place, model.config)
        found["attention"] = await session.compute(lambda: attention(model, ask.text, layer, head))
    return found


def _place(value: Any, config: cm.Config) -> tuple[int, int | None]:
    """Layer and head that are asked for."""
    if not isinstance(value, Mapping):
        raise InputError("attention must be an object with a layer and a head.")
    last = len(config.schedule) - 1
    layer, head = value.get("layer"), value.get("head")
    if head is not None:
        head = whole_number(head, "head", 0, config.attention.heads - 1)
    return (last if layer is None else whole_number(layer, "layer", 0, last)), head


def attention(model: cm.Model, text: str, layer: int, head: int | None) -> dict[str, Any]:
    """The attention of one layer over a text, at most over its first pieces.

    Args:
        model: any encoder.
        text: as it is; a [MASK] in it is one.
        layer: counted from 0.
        head: None = the mean of all.
    """
    encoding = model.encode([text])[0]
    check_maps(model, len(encoding.ids), 1)
    trace = cm.Trace(["probabilities"], steps=[layer])
    model.encoder(model.collate([encoding]), trace)
    maps = trace["probabilities", layer][0].float().cpu()  # [H, L, L]
    weights = maps.mean(dim=0) if head is None else maps[head]
    tokens = sentence_tokens(encoding, model.tokenizer)
    shown = weights[:MOST_POSITIONS, :MOST_POSITIONS].tolist()
    return {
        "layer": layer,
        "head": head,
        "layers": len(model.config.schedule),
        "heads": model.config.attention.heads,
        "tokens": [
            {"text": token.text, "special": token.special, "masked": token.masked}
            for token in tokens[:MOST_POSITIONS]
        ],
        "left_out": max(0, len(tokens) - MOST_POSITIONS),
        "weights": [[round(value, 4) for value in row] for row in shown],
    }
