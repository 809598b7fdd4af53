"""Parity of what only XLNet has: two streams, memory, directions."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.parity_cases import LONGEST, PADDINGS, Figure, apart, xlnet
from benchmarks.parity_models import Bare, inputs, order, two_streams, written
from core_models.batch import Batch
from core_models.network.trace import STEP_SITES, Trace

DIRECTIONS: dict[str, dict[str, Any]] = {
    "as released": {},
    "left to right (uni)": {"attn_type": "uni"},
    "distances clamped to 5": {"clamp_len": 5},
    "half of the rows reversed (bi_data)": {"bi_data": True},
}
"""Values that change how distances count."""
MEMORY = 7
"""Tokens of memory."""


def streams() -> Iterator[Figure]:
    """Figures of XLNet's two streams, with and without memory, in every direction."""
    for variation, values in DIRECTIONS.items():
        case = xlnet(mem_len=9, **values)
        reference = case.reference()
        with tempfile.TemporaryDirectory() as folder:
            model = written(reference, Path(folder))
        backward = torch.tensor([False, False, True, True]) if "bi_data" in values else None
        for remembered in (0, MEMORY):
            column = f"memory of {remembered}" if remembered else "no memory"
            fast, traced = (
                _two_streams(model, reference, remembered, backward, path) for path in (False, True)
            )
            for stream in ("content", "query"):
                yield Figure("xlnet", variation, stream, column, fast[stream], traced[stream])


def _two_streams(
    model: Bare, reference: Any, remembered: int, backward: Tensor | None, traced: bool
) -> dict[str, float]:
    """Differences of the logits on both streams of four rows of eleven tokens."""
    ids = inputs(11, "none")["input_ids"]
    ids = torch.cat([ids, ids[:1].flip(1)])  # an even number of rows: half run backwards
    width, steps = model.config.width, model.config.steps
    generator = torch.Generator().manual_seed(remembered)
    memory = [torch.randn(4, remembered, width, generator=generator) for _ in range(steps)]
    hidden, targets = order(11, 4)
    seen = (~hidden).gather(1, targets[..., None].expand(-1, -1, 11))
    batch = Batch(
        input_ids=ids,
        memory=tuple(memory) if remembered else (),
        reversed=backward,
        visibility=~hidden | torch.eye(11, dtype=torch.bool),
        targets=targets,
        target_visibility=seen,
    )
    left = reference.config.attn_type == "uni"
    if left:  # their rows that see nothing attend to everything
        seen = seen & (torch.arange(11) <= targets[..., None])
    keep = seen.any(-1) | bool(remembered)
    mapping = torch.nn.functional.one_hot(targets, 11).float()
    # they cannot mask several rows of a left-to-right model at once
    parts = [slice(r, r + 1) for r in range(4)] if left else [slice(0, 4)]
    with torch.no_grad():
        out = model.encoder(batch, Trace(STEP_SITES) if traced else None)
        theirs = [
            reference.transformer(
                ids[part],
                perm_mask=hidden[part].float(),
                target_mapping=mapping[part],
                mems=[m[part].transpose(0, 1) for m in memory] if remembered else None,
                use_mems=False,
                output_hidden_states=True,
            ).hidden_states[-2:]
            for part in parts
        ]
        content, query = (torch.cat(stream) for stream in zip(*theirs, strict=True))
        head = model.heads["permutation"]
        return {
            "content": apart(head(out.hidden), reference.lm_loss(content)),
            "query": apart(head(out.streams["query"])[keep], reference.lm_loss(query)[keep]),
        }


def segments() -> Iterator[Figure]:
    """Figures of three successive segments, each reading the memory that the last one left."""
    for reuse in (None, 6):
        case = xlnet(mem_len=13, reuse_len=reuse)
        reference = case.reference()
        with tempfile.TemporaryDirectory() as folder:
            model = written(reference, Path(folder))
        variation = "all of a segment" if reuse is None else f"the first {reuse} of a segment"
        paths = [_segments(model, reference, reuse, traced) for traced in (False, True)]
        for column, fast, traced in zip(("1", "2", "3"), *paths, strict=True):
            yield Figure("xlnet", variation, "permutation", f"segment {column}", fast, traced)


def _segments(model: Bare, reference: Any, reuse: int | None, traced: bool) -> list[float]:
    theirs: Any = None
    ours: tuple[Tensor, ...] = ()
    found = []
    for step in range(3):
        values = inputs(11 + step, "none", pad_id=5)
        ids, kinds = values["input_ids"], values["token_type_ids"]
        batch = Batch(input_ids=ids, segment_ids=kinds, memory=ours, remember=13, reuse=reuse)
        with torch.no_grad():
            expected = reference(ids, token_type_ids=kinds, mems=theirs, use_mems=True)
            out = model.encoder(batch, Trace(STEP_SITES) if traced else None)
            logits = model.heads["permutation"](out.hidden)
        theirs, ours = expected.mems, out.memory
        pairs = zip(ours, theirs, strict=True)
        memory = [apart(mine.transpose(0, 1), yours) for mine, yours in pairs]
        found.append(max(apart(logits, expected.logits), *memory))
    return found


def padded_streams() -> Iterator[Figure]:
    """Figures of both streams where a row is padded."""
    reference = xlnet().reference()
    with tempfile.TemporaryDirectory() as folder:
        model = written(reference, Path(folder))
    head = model.heads["permutation"]
    for column, (length, pad) in {**PADDINGS, LONGEST: (150, "left")}.items():
        values, batch = two_streams(length, pad, pad_id=5)
        real = values["attention_mask"].bool()
        # their padded rows see themselves, ours nothing
        keep = real.gather(1, batch.targets)
        found: dict[str, list[float]] = {"content": [], "query": []}
        with torch.no_grad():
            theirs = reference.transformer(**values, use_mems=False, output_hidden_states=True)
            content, query = (reference.lm_loss(x) for x in theirs.hidden_states[-2:])
            for trace in (None, Trace(STEP_SITES)):
                out = model.encoder(batch, trace)
                found["content"].append(apart(head(out.hidden)[real], content[real]))
                ours = head(out.streams["query"])
                found["query"].append(apart(ours[keep], query[keep]))
        for stream, (fast, traced) in found.items():
            yield Figure("xlnet", "random order", stream, column, fast, traced)


TABLES: tuple[tuple[str, Callable[[], Iterator[Figure]], str, str], ...] = (
    (
        "XLNet: a random order, both streams",
        padded_streams,
        "stream",
        "The last four tokens of an order are predicted. Longest input: 150 tokens.",
    ),
    (
        "XLNet: directions and memory",
        streams,
        "stream",
        "Eleven tokens in a random order. The bi_data rows are two forward and two backward.",
    ),
    (
        "XLNet: three segments after one another",
        segments,
        "head",
        "Differences of logits and of the memory that is handed on, whichever is larger. "
        "What is remembered: up to 13 tokens.",
    ),
)
"""Title, figures, what a row is, note."""
