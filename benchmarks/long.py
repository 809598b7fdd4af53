"""Long inputs: rotary encoders against transformers' with the same weights, 512 to 8,192 tokens.

One sequence at a time without gradients; transformers runs with SDPA, which is its faster attention
at these lengths. Ettin's local layers (ModernBERT's class) are computed in blocks here and over the
whole square there; EuroBERT and NeoBERT have global layers alone. Weights are drawn, so nothing is
downloaded. A part is run with, for example, ``python -m benchmarks.long --size neobert``.
"""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import replace

import torch

import core_models as cm
from benchmarks.forward import Figure, Pair, call, difference, drawn_ids, same_weights, shaped
from benchmarks.measure import Report, Table, environment, interleaved, median_ratio, run_main

LENGTHS = (512, 1024, 2048, 4096, 8192)
FEWEST = 3
"""Rounds of each length."""
SIZES: dict[str, tuple[int, int] | None] = {
    "ettin-encoder-17m": None,
    "eurobert-210m": (6, 256),
    "neobert": (6, 256),
}
"""Published sizes, and the layers and width that they are measured with; None = their own."""


def measure(arguments: argparse.Namespace) -> Report:
    """Time every length."""
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    found = {name: _measured(name, arguments) for name in arguments.size}
    tables = [_table(name, figures) for name, figures in found.items()]
    machine = environment("torch", "transformers", threads=torch.get_num_threads())
    every = [figure for figures in found.values() for figure in figures]
    return Report(tables, machine, every)


def _measured(name: str, arguments: argparse.Namespace) -> list[Figure]:
    config = shaped(name, SIZES.get(name))
    rotary = config.attention.rotary
    assert rotary is not None
    positions = max(rotary.positions, *arguments.lengths)
    attention = replace(config.attention, rotary=replace(rotary, positions=positions))
    pair = same_weights(replace(config, attention=attention))
    pair = Pair(pair.ours, {"sdpa": pair.theirs["sdpa"]})
    figures: list[Figure] = []
    for length in arguments.lengths:
        ids = drawn_ids(1, length)
        batch = cm.Batch(input_ids=ids)
        runs = {
            "ours": lambda batch=batch: pair.ours(batch).hidden,
            "theirs": lambda ids=ids: call(pair.theirs["sdpa"], ids),
        }
        apart = difference(pair, ids)
        with torch.inference_mode():
            times = interleaved(runs, seconds=arguments.seconds, fewest=FEWEST, warm=1)
        figures.append(
            {
                "size": name,
                "layers": config.steps,
                "width": config.width,
                "length": length,
                "ours": statistics.median(times["ours"]),
                "theirs": statistics.median(times["theirs"]),
                "ratio": median_ratio(times["ours"], times["theirs"]),
                "rounds": len(times["ours"]),
                "difference": apart,
            }
        )
    return figures


def _table(name: str, figures: Sequence[Figure]) -> Table:
    rows = [
        (
            f"{figure['length']:,}",
            f"{1000 * float(figure['ours']):,.0f}",
            f"{1000 * float(figure['theirs']):,.0f}",
            f"{figure['ratio']:.2f}",
        )
        for figure in figures
    ]
    return Table(
        f"{name}, {figures[0]['layers']} layers of {figures[0]['width']}",
        ("tokens", "Cloze, ms", "transformers, ms", "Cloze / transformers"),
        rows,
        "Medians of runs in turn, and the median of each round's ratio of times, below 1: faster.",
    )


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long", description=__doc__)
    parser.add_argument(
        "--size",
        nargs="+",
        choices=[name for name in cm.sizes() if cm.size(name).attention.rotary],
        default=list(SIZES),
        metavar="SIZE",
        help="published sizes with rotary positions",
    )
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS), metavar="L")
    parser.add_argument("--seconds", type=float, default=6.0, help="time for each row")
    parser.add_argument("--threads", type=int, help="torch threads (default: torch's choice)")
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
