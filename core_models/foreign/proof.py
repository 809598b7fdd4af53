"""The same text through our code and through transformers: how far apart the two are."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from core_models.batch import Batch
from core_models.checkpoints.files import CONFIG, read_json
from core_models.errors import InputError
from core_models.foreign.lock import transformers
from core_models.model import Model, Texts
from core_models.network.trace import Trace
from core_models.output import every_place

FIELDS = {
    "prediction_logits": ("masked_token",),
    "seq_relationship_logits": ("next_sentence", "sentence_order"),
    "sop_logits": ("sentence_order",),
    "logits": (
        *("masked_token", "permutation", "causal", "replaced_token"),
        *("next_sentence", "classify", "multilabel", "regress", "tag"),
    ),
}
"""Heads of ours that an output of theirs may be, by its name."""
ROUNDS = 5
"""Passes whose median time is told."""


@dataclass(frozen=True)
class Proof:
    """Largest differences, over every number there is."""

    made_for: str
    """Class of transformers that ran."""
    version: str
    """Of transformers."""
    hidden: float
    """Hidden states, before every layer and after the last."""
    predictions: dict[str, float]
    """Scores of each head that their class has, too."""
    attention: float | None
    """Attention of every head in every layer; None where the class gives none."""
    ours: float
    """Seconds of one pass with its heads; the median of several."""
    theirs: float
    """The same for transformers."""


def proof(model: Model, folder: str | Path, texts: Texts) -> Proof:
    """Compare a model with what transformers makes of its folder.

    transformers has no mask decoder (DeBERTa), so that head is compared on the last layer.

    Args:
        model: opened from ``folder``, in eval mode and float32 on the CPU.
        folder: of the model.
        texts: a text, several or pairs.

    Raises:
        InputError: transformers has no class for the folder, or a text does not go.
    """
    whole, name, version = _theirs(Path(folder))
    batch = model.batch(texts)
    given = _given(whole, batch)
    with torch.no_grad():
        states = model.encoder(batch, every_step=True).states
        found = whole(**given, output_hidden_states=True, output_attentions=True)
        real = _real(batch)
        hidden = _largest(zip(states, found.hidden_states, strict=True), real)
        attention = _attention(model, batch, found)
        predictions = _predictions(model, batch, whole, given, found, real)
        ours, theirs = _seconds(lambda: model(batch), lambda: whole(**given))
    return Proof(name, version, hidden, predictions, attention, ours, theirs)


def _theirs(folder: Path) -> tuple[Any, str, str]:
    """The folder as a model of the class that it was made for."""
    classes = read_json(folder / CONFIG).get("architectures")
    name = str(classes[0]) if isinstance(classes, list) and classes else ""
    with transformers() as library:
        kind = getattr(library, name, None)
        if not (isinstance(kind, type) and issubclass(kind, library.PreTrainedModel)):
            raise InputError(
                f"config.json: architectures names {name[:80]!r}, which transformers "
                f"{library.__version__} does not have, so there is nothing to compare with."
            )
        try:
            whole = kind.from_pretrained(  # type: ignore[attr-defined]
                folder,
                local_files_only=True,
                use_safetensors=True,
                dtype=torch.float32,
                attn_implementation="eager",
            )
        except Exception as error:  # of any kind, by what a class needs
            raise InputError(
                f"transformers {library.__version__} cannot open this model "
                f"({type(error).__name__}), so there is nothing to compare with."
            ) from None
        return whole.eval(), name, library.__version__


def _given(whole: Any, batch: Batch) -> dict[str, Tensor]:
    assert batch.input_ids is not None
    given = {"input_ids": batch.input_ids}
    if batch.attention_mask is not None:
        given["attention_mask"] = batch.attention_mask.long()
    if batch.segment_ids is not None and "token_type_ids" in _arguments(whole):
        given["token_type_ids"] = batch.segment_ids
    return given


def _arguments(whole: Any) -> tuple[str, ...]:
    code = whole.forward
    while hasattr(code, "__wrapped__"):
        code = code.__wrapped__
    names: tuple[str, ...] = code.__code__.co_varnames
    return names


def _real(batch: Batch) -> Tensor:
    mask = batch.attention_mask
    return torch.ones(batch.shape, dtype=torch.bool) if mask is None else mask


def _largest(pairs: Any, real: Tensor) -> float:
    return max(float((a - b)[real].abs().max()) for a, b in pairs)


def _attention(model: Model, batch: Batch, found: Any) -> float | None:
    if not getattr(found, "attentions", None):
        return None
    trace = Trace(["probabilities"])
    try:
        model.encoder(batch, trace)
    except InputError:  # the class attends in a way of its own
        return None
    real = _real(batch)
    square = real[:, :, None] & real[:, None, :]
    maps = [trace["probabilities", step] for step in range(model.config.steps)]
    pairs = zip(maps, found.attentions, strict=True)
    moved = ((a.permute(0, 2, 3, 1), b.permute(0, 2, 3, 1)) for a, b in pairs)
    return _largest(moved, square)


def _predictions(
    model: Model, batch: Batch, whole: Any, given: dict[str, Tensor], found: Any, real: Tensor
) -> dict[str, float]:
    answers = dict(model(batch).logits)
    if model.config.mask_decoder is not None and "masked_token" in answers:
        answers["masked_token"] = model.heads["masked_token"](model.encoder(batch).hidden)
    if "permutation" in answers:
        asked = every_place(batch, model.tokenizer.mask_id)
        assert asked.target_visibility is not None
        hidden_from = (~asked.target_visibility).float()
        eye = torch.eye(batch.shape[1]).expand(batch.shape[0], -1, -1)
        found = whole(**given, perm_mask=hidden_from, target_mapping=eye)
    elif "causal" in answers:  # what follows a mask piece does not see it, here alone
        seen = replace(batch, visibility=None)
        answers["causal"] = model.heads["causal"](model.encoder(seen).hidden)
    result: dict[str, float] = {}
    for field, heads in FIELDS.items():
        theirs = getattr(found, field, None)
        for head in heads:
            ours = answers.get(head)
            if theirs is None or ours is None or head in result:
                continue
            theirs = theirs if theirs.dim() == ours.dim() else theirs.squeeze(-1)
            if theirs.shape == ours.shape:
                difference = (ours - theirs).abs()
                each = difference[real] if difference.shape[:2] == real.shape else difference
                result[head] = float(each.max())
                break
    if "span" in answers and hasattr(found, "start_logits"):
        both = torch.stack([found.start_logits, found.end_logits], -1)
        result["span"] = float((answers["span"] - both)[real].abs().max())
    return result


def _seconds(*works: Callable[[], object]) -> tuple[float, ...]:
    """Median seconds of each, run in turn."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for own, work in zip(times, works, strict=True):
            start = time.perf_counter()
            work()
            own.append(time.perf_counter() - start)
    return tuple(map(statistics.median, times))
