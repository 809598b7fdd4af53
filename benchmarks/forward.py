"""Forward latency: our fast path against transformers' BertForMaskedLM with the same weights.

One sentence at a time, as the page asks for it. Both run in float32 without gradients, with the
scores of every position (``BertForMaskedLM`` has no other way), and transformers uses its SDPA
attention. Run with ``python -m benchmarks.forward``.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

import core_models as cm
from benchmarks.measure import Report, Table, environment, interleaved, median_ratio, run_main
from core_models.checkpoints.files import save_checkpoint
from core_models.checkpoints.formats import BY_FAMILY
from core_models.encoder import initialise
from core_models.heads import build_head

SIZES = ("bert-mini", "bert-base-uncased")
LENGTHS = (32, 128, 512)
TOLERANCE = 1e-4
"""Largest difference of logits that still counts as the same model."""


class MaskedModel(nn.Module):
    """Encoder and masked-token head, without a tokenizer."""

    def __init__(self, config: cm.Config) -> None:
        """Build with fresh weights, drawn with seed 0."""
        super().__init__()
        self.encoder = cm.Encoder(config)
        head = build_head("masked_token", config, self.encoder.embeddings)
        self.heads = nn.ModuleDict({"masked_token": head})
        initialise(self, config.initial_std, torch.Generator().manual_seed(0))

    def forward(self, ids: Tensor) -> Tensor:
        """Ids [B, L] -> logits [B, L, V]."""
        hidden = self.encoder(cm.Batch(input_ids=ids)).hidden
        logits: Tensor = self.heads["masked_token"](hidden)
        return logits


def measure(arguments: argparse.Namespace) -> Report:
    """Time every size and length."""
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    rows: list[tuple[str, ...]] = []
    figures: list[dict[str, float | int | str]] = []
    with torch.inference_mode():
        for size in arguments.sizes:
            ours, theirs = same_weights(cm.size(size))
            for length in arguments.lengths:
                figure = _compare(ours, theirs, length, arguments.seconds)
                figures.append({"size": size, "length": length, **figure})
                rows.append(
                    (
                        size,
                        str(length),
                        f"{1000 * figure['ours']:.1f}",
                        f"{1000 * figure['theirs']:.1f}",
                        f"{figure['ratio']:.2f}",
                    )
                )
    table = Table(
        "Forward pass, batch of 1, all positions scored",
        ("size", "tokens", "Cloze, ms", "transformers, ms", "Cloze / transformers"),
        rows,
        "Medians of runs in turn; the ratio is the median of all rounds' ratios. Below 1: faster.",
    )
    machine = environment("torch", "transformers", threads=torch.get_num_threads())
    return Report("python -m benchmarks.forward", [table], machine, figures)


def same_weights(
    config: cm.Config,
) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """Our model and transformers' with equal weights; both take ids and give logits."""
    from transformers import BertForMaskedLM
    from transformers.utils import logging

    logging.disable_progress_bar()

    ours = MaskedModel(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(ours, BY_FAMILY[config.family], config, Path(folder))
        theirs = BertForMaskedLM.from_pretrained(folder, attn_implementation="sdpa").eval()
    return ours, lambda ids: theirs(input_ids=ids).logits


def _compare(
    ours: Callable[[Tensor], Tensor],
    theirs: Callable[[Tensor], Tensor],
    length: int,
    seconds: float,
) -> dict[str, float]:
    ids = torch.randint(1000, 30000, (1, length), generator=torch.Generator().manual_seed(length))
    difference = (ours(ids) - theirs(ids)).abs().max().item()
    if difference > TOLERANCE:
        raise RuntimeError(f"logits differ by {difference:g}: not the same model")
    times = interleaved({"ours": lambda: ours(ids), "theirs": lambda: theirs(ids)}, seconds=seconds)
    return {
        "ours": statistics.median(times["ours"]),
        "theirs": statistics.median(times["theirs"]),
        "ratio": median_ratio(times["ours"], times["theirs"]),
        "rounds": len(times["ours"]),
        "difference": difference,
    }


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forward", description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), metavar="NAME")
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS), metavar="L")
    parser.add_argument("--seconds", type=float, default=15.0, help="time for each row")
    parser.add_argument("--threads", type=int, help="torch threads (default: torch's choice)")
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
