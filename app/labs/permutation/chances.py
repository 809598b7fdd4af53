"""What a model with two streams makes of an order of prediction: probabilities and attention."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

import core_models as cm
from app.labs.permutation.answers import (
    HEAD,
    Cut,
    Setting,
    cut,
    leaking,
    ordering,
    other_orders,
)
from core_models.batch import Batch
from core_models.masking.orderings import Ordering

GUESSES = 3
OWN = "own"
"""Name of the visitor's order among those compared."""


def remembered(model: cm.Model, setting: Setting) -> Cut | None:
    """The sentence before this one in pieces; its plain pieces enter the memory."""
    return None if setting.memory is None else cut(model.tokenizer, setting.memory)


def remember(model: cm.Model, before: Cut | None) -> tuple[Tensor, ...]:
    """Inputs of every step for the sentence before, [1, M, D] each, special pieces left out.

    In pretraining too only the reused text enters the memory, without its special pieces.
    """
    if before is None:
        return ()
    kept = before.plain[-1] + 1
    batch = replace(model.collate([before.encoding]), remember=kept, reuse=kept)
    memory: tuple[Tensor, ...] = model.encoder(batch).memory
    return memory


def batch_of(model: cm.Model, sentence: Cut, found: Sequence[Ordering], memory: Any) -> Batch:
    """One row per ordering; all have equally many targets."""
    one = model.collate([sentence.encoding])
    rows = len(found)

    def repeated(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.expand(rows, *tensor.shape[1:])

    device = one.device
    return replace(
        one,
        input_ids=repeated(one.input_ids),
        segment_ids=repeated(one.segment_ids),
        visibility=torch.cat([each.visibility for each in found]).to(device),
        targets=torch.cat([each.targets for each in found]).to(device),
        target_visibility=torch.cat([each.target_visibility for each in found]).to(device),
        memory=tuple(t.expand(rows, -1, -1) for t in memory),
    )


def chances(model: cm.Model, batch: Batch) -> tuple[Tensor, Tensor]:
    """Log-probabilities at every target: of all pieces [B, M, V], and of the true one [B, M]."""
    assert batch.input_ids is not None
    assert batch.targets is not None
    queries = model.encoder(batch).streams["query"]
    logs: Tensor = model.heads[HEAD](queries).float().log_softmax(-1)
    labels = batch.input_ids.gather(1, batch.targets)
    return logs, logs.gather(-1, labels[..., None]).squeeze(-1)


def judge(model: cm.Model, sentence: Cut, setting: Setting) -> dict[str, Any]:
    """Probability of each target under the visitor's order and under others.

    ``bits`` holds -log2 of the probability of all targets together, by the chain rule; with the
    paper's variant ``whole`` holds that of the whole sentence, as then every piece is predicted.
    With a memory ``forgotten`` holds the same without it, in the visitor's order.
    """
    memory = remember(model, remembered(model, setting))
    own = ordering(sentence, setting, setting.order)
    targets = own.targets[0, : int(own.counts[0])].tolist()
    orders = {OWN: setting.order, **other_orders(sentence, setting)}
    found = [ordering(sentence, setting, order, every=True) for order in orders.values()]
    batch = batch_of(model, sentence, found, memory)
    logs, true = chances(model, batch)
    by_order = {
        name: dict(zip(each.targets[0].tolist(), row.tolist(), strict=True))
        for name, each, row in zip(orders, found, true, strict=True)
    }
    place = {position: n for n, position in enumerate(found[0].targets[0].tolist())}
    rows = logs[0, [place[position] for position in targets]]
    leak = None
    if setting.leak:
        wrong = batch_of(model, sentence, [leaking(own)], memory)
        wrong_logs, wrong_true = chances(model, wrong)
        rows, leak = wrong_logs[0], wrong_true[0].exp().tolist()
    forgotten = None
    if memory:
        forgotten = chances(model, batch_of(model, sentence, [own], ()))[1][0].tolist()
    best = rows.topk(GUESSES, -1)
    display = model.tokenizer.display
    return {
        "orders": list(orders),
        "rows": [
            {
                "position": position,
                "chances": {name: math.exp(found[position]) for name, found in by_order.items()},
                "leak": None if leak is None else leak[n],
                "forgotten": None if forgotten is None else math.exp(forgotten[n]),
                "guesses": [
                    {"text": display(index), "chance": math.exp(value)}
                    for index, value in zip(
                        best.indices[n].tolist(), best.values[n].tolist(), strict=True
                    )
                ],
            }
            for n, position in enumerate(targets)
        ],
        "bits": {
            name: -sum(found[position] for position in targets) / math.log(2)
            for name, found in by_order.items()
        }
        | ({} if forgotten is None else {"forgotten": -sum(forgotten) / math.log(2)}),
        "whole": {name: -sum(found.values()) / math.log(2) for name, found in by_order.items()}
        if setting.variant == "paper"
        else None,
    }


def attention(
    model: cm.Model, sentence: Cut, setting: Setting, layer: int, head: int
) -> dict[str, Any]:
    """Attention of both streams in one head, remembered pieces first among the keys."""
    before = remembered(model, setting)
    found = ordering(sentence, setting, setting.order)
    if setting.leak:
        found = leaking(found)
    trace = cm.Trace(["probabilities"], steps=[layer])
    model.encoder(batch_of(model, sentence, [found], remember(model, before)), trace)

    def rows(stream: str) -> list[list[float]]:
        weights = trace.get("probabilities", layer, stream)[0, head]
        return [[round(value, 5) for value in row] for row in weights.tolist()]

    names = [] if before is None else [t.text for t in before.tokens[: before.plain[-1] + 1]]
    return {
        "layer": layer,
        "head": head,
        "layers": model.config.steps,
        "heads": model.config.attention.heads,
        "remembered": names,
        "content": rows("content"),
        "query": rows("query"),
    }
