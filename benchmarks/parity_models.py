"""Random tiny models of transformers, and the same models as read from their files.

Shared by ``benchmarks.parity``, which measures how far the two are apart, and by the parity tests.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.checkpoints.files import (
    load_checkpoint,
    present_heads,
    read_format,
    read_json,
    read_tensors,
    their_names,
)
from core_models.checkpoints.table import Format
from core_models.config import Config
from core_models.heads.pretraining import build_head
from core_models.network.encoder import Encoder
from core_models.network.trace import Trace

VOCABULARY = 97


class Bare(nn.Module):
    """Encoder and heads as in Model, without a tokenizer."""

    def __init__(self, config: Config, heads: tuple[str, ...], form: Format) -> None:
        super().__init__()
        self.config = config
        self.form = form
        self.spare: dict[str, Tensor] = {}
        self.encoder = Encoder(config)
        self.heads = nn.ModuleDict(
            {name: build_head(name, config, self.encoder.embeddings) for name in heads}
        )

    def logits(self, batch: Batch, trace: Trace | None = None) -> dict[str, Tensor]:
        """What each head says about the encoder's output."""
        hidden = self.encoder(batch, trace=trace).hidden
        return {name: head(hidden) for name, head in self.heads.items()}


def randomised(model: Any, *, seed: int = 5, scale: float = 1.0) -> Any:
    """``model`` with weights, biases and norms that are all far from their initial values.

    Args:
        model: theirs.
        seed: of the draw.
        scale: factor of everything but the norms; far below 1 the variances before norms are so
            small that their epsilon counts.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in model.modules():
            norm = "Norm" in type(part).__name__  # some have classes of their own
            for name, p in part.named_parameters(recurse=False):
                mean, std = (1.0, 0.3) if norm and name == "weight" else (0.0, 0.17)
                drawn = torch.randn(p.shape, generator=generator) * std + mean
                p.copy_(drawn if norm else drawn * scale)
    model.tie_weights()
    return model.eval()


def read(folder: Path) -> Bare:
    """A folder as ``Model.from_folder`` reads it, without a tokenizer."""
    values = read_json(folder / "config.json")
    form = read_format(values)
    names = their_names(form, read_tensors(folder))
    config = form.settle(form.read_config(values), names)
    heads = present_heads(form, names)
    with torch.device("meta"):
        module = Bare(config, heads, form.at(config))
    module.spare = load_checkpoint(module, form, config, folder)
    for head in module.heads.values():
        if hasattr(head, "tie"):
            head.tie(module.encoder.embeddings)
    return module.eval()


def written(model: Any, folder: Path) -> Bare:
    """Their model, saved by them and read by us."""
    model.save_pretrained(folder)
    return read(folder)


def inputs(length: int, pad: str, *, pad_id: int = 0, segments: int = 2) -> dict[str, Tensor]:
    """Arguments for their forward: three rows, of which the second has four tokens of padding."""
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(5, VOCABULARY, (3, length), generator=generator)
    mask = torch.ones(3, length, dtype=torch.long)
    if pad == "right":
        mask[1, -4:] = 0
    if pad == "left":
        mask[1, :4] = 0
    ids[mask == 0] = pad_id
    values = {"input_ids": ids, "attention_mask": mask}
    if segments > 1:
        types = torch.zeros(3, length, dtype=torch.long)
        types[:, length // 2 :] = 1
        values["token_type_ids"] = types
    return values


def batch_of(values: Mapping[str, Tensor]) -> Batch:
    """The same inputs as our batch."""
    return Batch(
        input_ids=values["input_ids"],
        attention_mask=values["attention_mask"].bool(),
        segment_ids=values.get("token_type_ids"),
    )


def order(length: int, rows: int = 2) -> tuple[Tensor, Tensor]:
    """A random order per row, as (perm_mask [B, L, L], positions of the last four [B, 4])."""
    generator = torch.Generator().manual_seed(length)
    orders = torch.stack([torch.randperm(length, generator=generator) for _ in range(rows)])
    rank = orders.argsort(1)
    rank = rank.clamp(min=length - 5)  # the first tokens of the order all see each other
    hidden = rank[:, :, None] <= rank[:, None, :]
    hidden &= (rank >= length - 4)[:, None, :]
    return hidden, orders[:, -4:]


def two_streams(
    length: int, pad: str = "none", *, pad_id: int, segments: int = 2
) -> tuple[dict[str, Tensor], Batch]:
    """The same two-stream pass for them and for us."""
    values = inputs(length, pad, pad_id=pad_id, segments=segments)
    hidden, targets = order(length, 3)
    mapping = nn.functional.one_hot(targets, length)
    theirs = values | {"perm_mask": hidden.float(), "target_mapping": mapping.float()}
    visible = ~hidden
    batch = Batch(
        input_ids=values["input_ids"],
        attention_mask=values["attention_mask"].bool(),
        segment_ids=values.get("token_type_ids"),
        visibility=visible | torch.eye(length, dtype=torch.bool),
        targets=targets,
        target_visibility=visible.gather(1, targets[..., None].expand(-1, -1, length)),
    )
    return theirs, batch
