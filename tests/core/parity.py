"""What every parity test does: a random model of transformers, read by us, compared.

A test builds *their* model with :func:`randomised`, writes it, reads it with :func:`read`, and
hands both to one of the ``check_*`` functions. Each returns the largest difference that it saw.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.parity_models import (
    VOCABULARY,
    Bare,
    batch_of,
    inputs,
    randomised,
    read,
    written,
)
from core_models.batch import Batch
from core_models.checkpoints.files import save_checkpoint, to_their_tensors
from core_models.network.trace import STEP_SITES, Trace

__all__ = [
    "LENGTHS",
    "VOCABULARY",
    "Bare",
    "batch_of",
    "check_embeddings",
    "check_epsilon",
    "check_gradients",
    "check_outputs",
    "check_round_trip",
    "inputs",
    "randomised",
    "read",
    "written",
]

LENGTHS = [(11, "none"), (12, "right"), (13, "left"), (38, "none")]
"""(L, padding) of the output checks; the models of the tests take 38 tokens or more."""


def check_outputs(
    model: Bare,
    reference: Any,
    values: Mapping[str, Tensor],
    heads: Mapping[str, str],
    *,
    traced: bool = False,
) -> dict[str, float]:
    """Logits of every head, equal to 1e-5 at every real token.

    Args:
        model: ours.
        reference: theirs, in eval mode.
        values: arguments of their forward.
        heads: our head name -> the attribute of their output that holds its logits.
        traced: run the written-out attention instead of the fused one.
    """
    assert set(model.heads) == set(heads)
    with torch.no_grad():
        expected = reference(**values)
        ours = model.logits(batch_of(values), Trace(STEP_SITES) if traced else None)
    return {
        head: _close(ours[head], getattr(expected, name), values["attention_mask"].bool(), 1e-5)
        for head, name in heads.items()
    }


def check_gradients(
    model: Bare, reference: Any, values: Mapping[str, Tensor], heads: Mapping[str, str]
) -> float:
    """Every gradient equal to 1e-4 in train mode; both configs must have no dropout."""
    real = values["attention_mask"].bool()
    expected = reference.train()(**values)
    _loss({head: getattr(expected, name) for head, name in heads.items()}, real).backward()
    _loss(model.train().logits(batch_of(values)), real).backward()
    wanted = {n: p.grad for n, p in reference.named_parameters() if p.grad is not None}
    missing = [name for name, p in model.named_parameters() if p.grad is None]
    assert not missing, f"no gradient reaches {missing}"
    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    found = to_their_tensors(model.form, grads, model.config)
    assert found.keys() == wanted.keys()
    for name, grad in found.items():
        text = f"gradient of {name}: {{}}".format
        torch.testing.assert_close(grad, wanted[name], atol=1e-4, rtol=1e-4, msg=text)
    return max(float((grad - wanted[name]).abs().max()) for name, grad in found.items())


def check_embeddings(model: Bare, reference: Any, values: Mapping[str, Tensor]) -> None:
    """Piece embeddings in place of ids: bit-equal to ids, and equal to theirs without padding."""
    batch = batch_of(values)
    assert batch.input_ids is not None
    with torch.no_grad():
        rows = model.encoder.embeddings.pieces(batch.input_ids)
        from_rows = Batch(
            embeddings=rows, attention_mask=batch.attention_mask, segment_ids=batch.segment_ids
        )
        ours = model.encoder(from_rows).hidden
        assert torch.equal(ours, model.encoder(batch).hidden)
        if values["attention_mask"].all():
            rest = {name: value for name, value in values.items() if name != "input_ids"}
            body = reference.base_model(inputs_embeds=rows, **rest)
            torch.testing.assert_close(ours, body.last_hidden_state, atol=1e-5, rtol=0)


def check_epsilon(
    model: Bare, reference: Any, values: Mapping[str, Tensor], heads: Mapping[str, str]
) -> None:
    """Outputs equal where the norms' epsilon matters, and unequal with another one.

    ``reference`` was drawn with ``scale`` 3e-3 or so.
    """
    check_outputs(model, reference, values, heads)
    real = values["attention_mask"].bool()
    with torch.no_grad():
        expected = reference.base_model(**values).last_hidden_state[real]
        found = model.encoder(batch_of(values)).hidden[real]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        for part in model.modules():
            if isinstance(part, nn.LayerNorm | nn.RMSNorm):
                part.eps = 1e-12 if part.eps > 1e-6 else 1e-5
        other = model.encoder(batch_of(values)).hidden[real]
    assert float((other - expected).abs().max()) > 1e-3


def check_round_trip(reference: Any, auto: Any, folder: Path) -> Bare:
    """Theirs -> ours -> theirs -> ours, bit for bit, with nothing missing or left over."""
    model = written(reference, folder / "theirs")
    save_checkpoint(model, model.form, model.config, folder / "ours", spare=model.spare)
    again, info = auto.from_pretrained(folder / "ours", output_loading_info=True)
    assert type(again) is type(reference)
    assert not any(info.values()), info
    expected = reference.state_dict()
    assert again.state_dict().keys() == expected.keys()
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    third = read(folder / "ours")
    assert third.config == model.config
    assert third.state_dict().keys() == model.state_dict().keys()
    for name, tensor in third.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    for head in third.heads.values():
        if hasattr(head, "tie"):
            assert head.decoder.weight is third.encoder.embeddings.pieces.weight
    return third


def _close(ours: Tensor, theirs: Tensor, real: Tensor, tolerance: float) -> float:
    """Compare real tokens of [B, L, ...], or rows of [B, ...] whose first token is real."""
    per_token = ours.shape[:2] == real.shape
    keep = real if per_token else real[:, 0]
    torch.testing.assert_close(ours[keep], theirs[keep], atol=tolerance, rtol=0)
    return float((ours[keep] - theirs[keep]).abs().max())


def _loss(logits: Mapping[str, Tensor], real: Tensor) -> Tensor:
    losses = [
        (x[real] if x.shape[:2] == real.shape else x[real[:, 0]]).square().mean()
        for x in logits.values()
    ]
    return torch.stack(losses).sum()
