"""Training speed: our step against the usual transformers step, on the same batches.

Both pretrain the same size from the same weights with masked tokens and next sentence, with AdamW.
Ours computes last layer and scores only where they are read, and updates with the fused kernel;
``BertForPreTraining`` computes all of them, in the usual eager step in float32. ``--bf16`` adds our
step with matrix products in bfloat16, for processors that have it, and what dropout and an AdamW
that is not fused cost it. The operations of our step in a second stand beside what the machine does
in a plain product of large matrices, timed in the same rounds. Run with
``python -m benchmarks.training``; on a GPU with ``--device cuda --compile --bf16``.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import core_models as cm
from benchmarks.measure import Report, Table, environment, interleaved, median_ratio, run_main
from core_models.checkpoints.files import save_checkpoint
from core_models.checkpoints.formats import BY_FAMILY
from core_models.counting.flops import flops
from core_models.network.initialise import initialise
from core_models.objectives import MaskedToken, NextSentence, Weighted
from core_models.objectives.base import positions

VOCABULARY = 8192
IGNORED = -100
BF16 = "bf16"
WHOLE = "fp32, whole last layer"
COMPILED = "compiled"
SIDE = {"cpu": 2048, "cuda": 8192}
"""Rows and columns of the large matrices."""
TOLERANCE = 1e-4
"""Largest difference of the first losses, in nats, that still counts as the same model."""


class Pretrainer(nn.Module):
    """An encoder with both of BERT's objectives."""

    def __init__(self, config: cm.Config) -> None:
        """Build with fresh weights, drawn with seed 0."""
        super().__init__()
        self.encoder = cm.Encoder(config)
        masked = MaskedToken.build(config, self.encoder)
        pair = NextSentence.build(config)
        self.heads = nn.ModuleDict({"masked_token": masked.head, "next_sentence": pair.head})
        self.objective = Weighted([(1.0, masked), (1.0, pair)])
        initialise(self, config.initial_std, torch.Generator().manual_seed(0))


def measure(arguments: argparse.Namespace) -> Report:
    """Time whole optimizer steps."""
    config = cm.size(arguments.size).with_vocabulary(VOCABULARY).with_dropout(0.0)
    batch = random_batch(arguments.batch_size, arguments.length)
    batch = batch.to(arguments.device)
    steps = {"ours": our_step(config, batch), "theirs": their_step(config, batch)}
    check_equal({name: step() for name, step in steps.items()})
    steps[WHOLE] = our_step(config, batch, whole=True)
    if arguments.compile:
        steps[COMPILED] = our_step(config, batch, compiled=True)
    if arguments.bf16:
        steps[BF16] = our_step(config, batch, bf16=True)
        steps[f"{BF16}, dropout 0.1"] = our_step(config.with_dropout(0.1), batch, bf16=True)
        steps[f"{BF16}, AdamW not fused"] = our_step(config, batch, bf16=True, fused=False)
        if arguments.compile:
            steps[f"{BF16}, {COMPILED}"] = our_step(config, batch, bf16=True, compiled=True)
    kinds = [torch.float32, *([torch.bfloat16] if arguments.bf16 else [])]
    products = {f"product {kind}": product(kind, arguments.device) for kind in kinds}
    times = interleaved(steps | products, seconds=arguments.seconds)
    tokens = arguments.batch_size * arguments.length
    theirs = tokens / statistics.median(times["theirs"])
    shape = f"{arguments.batch_size} x {arguments.length}"
    lines, figures = [], []
    for name in [name for name in steps if name != "theirs"]:
        ours = tokens / statistics.median(times[name])
        speedup = median_ratio(times["theirs"], times[name])
        kind = "fp32" if name == "ours" else name
        rate = step_flops(config, batch, whole=name == WHOLE) / statistics.median(times[name])
        plain = f"product {torch.bfloat16 if BF16 in name else torch.float32}"
        most = 2 * SIDE[batch.input_ids.device.type] ** 3 / statistics.median(times[plain])
        lines.append(
            (
                arguments.size,
                shape,
                kind,
                f"{ours:,.0f}",
                f"{theirs:,.0f}",
                f"{speedup:.2f}",
                f"{rate / 1e9:,.0f}",
                f"{rate / most:.0%}",
            )
        )
        figure: dict[str, float | int | str] = {
            "size": arguments.size,
            "kind": kind,
            "tokens_per_step": tokens,
            "ours": ours,
            "theirs": theirs,
            "speedup": speedup,
            "flops_per_second": rate,
            "product_flops_per_second": most,
            "rounds": len(times[name]),
        }
        figures.append(figure)
    table = Table(
        "Training step: forward, backward, clip, AdamW",
        (
            "size",
            "batch",
            "our step",
            "Cloze, tokens/s",
            "transformers, tokens/s",
            "speed-up",
            "GFLOP/s",
            "of a plain product",
        ),
        lines,
        f"Vocabulary {VOCABULARY:,}, 15 % of the tokens hidden; transformers in float32. Medians "
        "of steps in turn; the speed-up is the median of each round's ratio. Above 1 is faster. "
        "Operations are those of core_models.counting.flops, without the optimizer's; the last "
        "column holds them against a product of two square matrices of "
        f"{SIDE[batch.input_ids.device.type]:,} rows in the same "
        "precision, which does nothing else.",
    )
    machine = environment("torch", "transformers", threads=torch.get_num_threads())
    if arguments.device == "cuda":
        machine.append(torch.cuda.get_device_name())
    return Report([table], machine, figures)


def check_equal(losses: dict[str, float]) -> None:
    """Refuse to compare models whose first losses differ."""
    difference = abs(losses["ours"] - losses["theirs"])
    if difference > TOLERANCE:
        raise RuntimeError(f"first losses differ by {difference:g} nats: not the same model")


def step_flops(config: cm.Config, batch: cm.Batch, *, whole: bool = False) -> float:
    """Operations of one step of ours: last step and heads where there is something to predict."""
    rows, length = batch.input_ids.shape
    assert batch.labels is not None
    hidden = batch.labels != IGNORED
    found = flops(config, length)
    read = hidden.clone()
    read[:, 0] = True
    # Of the last step every position gives keys and values, a quarter of the projections each.
    queries = found.attention_projections / 2 + found.attention + found.feed_forward
    whole = whole or batch.device.type != "cpu"
    unread = 0.0 if whole else 1 - positions(read)[0].shape[1] / length
    encoder = found.encoder - queries / config.steps * unread
    masked = found.heads["masked_token"] / length * int(hidden.sum())
    return 3.0 * (rows * (encoder + found.heads["next_sentence"]) + masked)


def product(kind: torch.dtype, device: str) -> Callable[[], float]:
    """The product of two large matrices."""
    side = SIDE[device]
    left, right = (torch.ones(side, side, dtype=kind, device=device) for _ in "ab")

    def run() -> float:
        return (left @ right)[0, 0].item()  # reading a number waits for the device

    return run


def random_batch(rows: int, length: int) -> cm.Batch:
    """Random pieces of which 15 % are hidden; only their number matters for speed."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(200, VOCABULARY, (rows, length), generator=generator)
    hidden = torch.rand((rows, length), generator=generator) < 0.15
    return cm.Batch(
        input_ids=ids.masked_fill(hidden, 103),
        segment_ids=(torch.arange(length) >= length // 2).long().repeat(rows, 1),
        labels=ids.masked_fill(~hidden, IGNORED),
        pair_labels=torch.randint(0, 2, (rows,), generator=generator),
    )


def our_step(
    config: cm.Config,
    batch: cm.Batch,
    *,
    bf16: bool = False,
    fused: bool = True,
    compiled: bool = False,
    whole: bool = False,
) -> Callable[[], float]:
    """One step of ours; ``whole``: with a last layer that computes every position."""
    device = batch.input_ids.device
    model = Pretrainer(config).train().to(device)
    if compiled:
        model.encoder.compile()

    def loss() -> torch.Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            output = model.encoder(batch) if whole else None
            total: torch.Tensor = model.objective(model.encoder, batch, output=output).total
        return total

    return _step(model, loss, fused=fused)


def their_step(config: cm.Config, batch: cm.Batch) -> Callable[[], float]:
    """One step of transformers from the same weights."""
    from transformers import BertForPreTraining
    from transformers.utils import logging

    logging.disable_progress_bar()

    ours = Pretrainer(config)
    del ours.objective  # the same heads under a second name
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(ours, BY_FAMILY[config.family], config, Path(folder))
        model = BertForPreTraining.from_pretrained(folder, attn_implementation="sdpa").train()
    model.to(batch.input_ids.device)
    inputs = {
        "input_ids": batch.input_ids,
        "token_type_ids": batch.segment_ids,
        "labels": batch.labels,
        "next_sentence_label": batch.pair_labels,
    }
    return _step(model, lambda: model(**inputs).loss, fused=False)


def _step(
    model: nn.Module, loss: Callable[[], torch.Tensor], *, fused: bool
) -> Callable[[], float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused)

    def step() -> float:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return value.item()

    return step


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("--size", default="bert-mini")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument(
        "--bf16", action="store_true", help="also our step in bfloat16, and its choices"
    )
    parser.add_argument("--device", choices=tuple(SIDE), default="cpu")
    parser.add_argument(
        "--compile", action="store_true", help="also our step with a compiled encoder"
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
