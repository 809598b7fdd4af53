"""Long inputs: ModernBERT against transformers' with the same weights, from 512 to 8,192 tokens.

One sequence at a time without gradients; transformers runs with SDPA, which is its faster attention
at these lengths. Local layers are computed in blocks here and over the whole square there. Weights
are drawn, so nothing is downloaded.
"""

import argparse
import statistics
from dataclasses import replace

import torch

import core_models as cm
from benchmarks.forward import VOCABULARY, Pair, call, difference, drawn_ids, same_weights
from benchmarks.measure import Report, Table, environment, interleaved, median_ratio, run_main

LENGTHS = (512, 1024, 2048, 4096, 8192)
FEWEST = 3
"""Rounds of each length."""
SIZE = "ettin-encoder-17m"


def measure(arguments: argparse.Namespace) -> Report:
    """Time every length."""
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    config = cm.size(arguments.size).with_vocabulary(VOCABULARY, pad_id=0)
    rotary = config.attention.rotary
    assert rotary is not None
    positions = max(rotary.positions, *arguments.lengths)
    attention = replace(config.attention, rotary=replace(rotary, positions=positions))
    pair = same_weights(replace(config, attention=attention))
    pair = Pair(pair.ours, {"sdpa": pair.theirs["sdpa"]})
    figures = []
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
                "length": length,
                "ours": statistics.median(times["ours"]),
                "theirs": statistics.median(times["theirs"]),
                "ratio": median_ratio(times["ours"], times["theirs"]),
                "rounds": len(times["ours"]),
                "difference": apart,
            }
        )
    rows = [
        (
            f"{figure['length']:,}",
            f"{1000 * figure['ours']:,.0f}",
            f"{1000 * figure['theirs']:,.0f}",
            f"{figure['ratio']:.2f}",
        )
        for figure in figures
    ]
    table = Table(
        f"{arguments.size}, {config.steps} layers of {config.width}",
        ("tokens", "Cloze, ms", "transformers, ms", "Cloze / transformers"),
        rows,
        "Medians of runs in turn, and the median of each round's ratio of times, below 1: faster.",
    )
    machine = environment("torch", "transformers", threads=torch.get_num_threads())
    return Report("python -m benchmarks.long", [table], machine, figures)


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long", description=__doc__)
    parser.add_argument("--size", default=SIZE, help="a published size with local layers")
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS), metavar="L")
    parser.add_argument("--seconds", type=float, default=6.0, help="time for each row")
    parser.add_argument("--threads", type=int, help="torch threads (default: torch's choice)")
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
