"""Speed of every family: our encoder against transformers' with the same weights.

One sequence at a time without gradients, as the page asks for it, and a training step (forward and
backward) over eight. transformers runs with each attention that it has for the family, and the
faster one counts; NeoBERT, which it does not have, runs there as the EuroBERT that computes the
same. Our BERT of as many layers runs in the same rounds, and so does the encoder that
``optimize_for_inference`` makes. Weights are drawn, so nothing is downloaded.

All families are measured at two shapes, and those of other shapes at their own, too. A part is run
with, for example, ``python -m benchmarks.forward --size mini --family deberta``.
"""

import argparse
import copy
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import core_models as cm
from benchmarks.measure import Report, Table, environment, interleaved, median_ratio, run_main
from core_models.checkpoints.files import save_checkpoint
from core_models.checkpoints.formats import BY_FAMILY
from core_models.heads.pretraining import build_head
from core_models.network.initialise import initialise

FAMILIES = {
    "bert": "bert-base-uncased",
    "roberta": "roberta-base",
    "albert": "albert-base",
    "spanbert": "spanbert-base-cased",
    "electra": "electra-base-discriminator",
    "macbert": "chinese-macbert-base",
    "xlnet": "xlnet-base-cased",
    "deberta": "deberta-base",
    "deberta_v2": "deberta-v2-xlarge",
    "deberta_v3": "deberta-v3-base",
    "modernbert": "modernbert-base",
    "distilbert": "distilbert-base-uncased",
    "eurobert": "eurobert-210m",
    "neobert": "neobert",
}
"""The published size whose values each family is measured with, at the shapes below."""
SHAPES = {"mini": (6, 256), "base": (12, 768)}
"""Layers and width; heads of 64, the inner width keeps its proportion."""
PUBLISHED = (
    "distilbert-base-uncased",
    "modernbert-base",
    "ettin-encoder-17m",
    "ettin-encoder-68m",
    "mmbert-small",
    "neobert",
)
"""Published sizes that are also measured as they are."""
LENGTHS = (32, 128, 512)
TRAINING = (8, 128)
"""Sequences and tokens of a training step, of encoders as wide as the first shape."""
VOCABULARY = 2000
"""Rows of the piece table; look-ups cost alike whatever their number."""
TOLERANCE = 1e-4
"""Largest difference of hidden states that still counts as the same model."""

Contestants = dict[str, Callable[[], object]]
Figure = dict[str, float | int | str]


class Shaped(nn.Module):
    """Encoder and heads, so that they can be saved, with drawn weights."""

    def __init__(self, config: cm.Config) -> None:
        """Draw with seed 0."""
        super().__init__()
        self.encoder = cm.Encoder(config)
        self.heads = nn.ModuleDict(
            {name: build_head(name, config, self.encoder.embeddings) for name in config.objectives}
        )
        initialise(self, config.initial_std, torch.Generator().manual_seed(0))


@dataclass(frozen=True)
class Pair:
    """One encoder as ours and as theirs, by attention."""

    ours: cm.Encoder
    theirs: dict[str, Any]


def shaped(name: str, shape: tuple[int, int] | None = None) -> cm.Config:
    """A published size over few pieces, with other layers and another width; None = its own."""
    config = cm.size(name)
    layers, width = shape or (config.steps, config.width)
    inner = config.feed_forward.width * width // config.width
    own_width = config.embeddings.width == config.width
    return replace(
        config,
        width=width,
        embeddings=replace(
            config.embeddings,
            vocabulary=VOCABULARY,
            pad_id=min(config.embeddings.pad_id, VOCABULARY - 1),
            width=width if own_width else config.embeddings.width,
        ),
        attention=config.attention.with_heads(width // 64, 64),
        feed_forward=replace(config.feed_forward, width=inner - inner % 8),
        schedule=(0,) * layers if config.blocks == 1 else tuple(range(layers)),
    )


def same_weights(config: cm.Config) -> Pair:
    """Our encoder, and transformers' with every attention that it has for the family."""
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    if not BY_FAMILY[config.family].in_transformers:
        config = replace(config, family="eurobert", score_bias=False)
    ours = Shaped(config).eval()
    theirs = {}
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(ours, BY_FAMILY[config.family], config, Path(folder))
        for attention in ("sdpa", "eager"):
            try:
                model = AutoModel.from_pretrained(folder, attn_implementation=attention)
            except ValueError:  # this family has no such attention
                continue
            if hasattr(model, "pooler"):
                model.pooler = None
            theirs[attention] = model.eval()
    return Pair(ours.encoder, theirs)


def measure(arguments: argparse.Namespace) -> Report:
    """Time every chosen shape, family and length."""
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    tables, figures = [], []
    for size in arguments.size:
        found = [
            {"size": size, **figure}
            for name, config in _chosen(size, arguments.family).items()
            for figure in _figures(name, config, arguments)
        ]
        figures += found
        tables.append(
            Table(
                _title(size),
                _COLUMNS,
                [_row(figure) for figure in found],
                "Milliseconds are medians of runs in turn; the other columns are medians of each "
                "round's ratio of times, below 1: faster. Our BERT has as many layers of the same "
                "width. Packed: `optimize_for_inference` in float32 and bfloat16 against "
                "transformers' float32.",
            )
        )
    machine = environment("torch", "transformers", threads=torch.get_num_threads())
    return Report(tables, machine, figures)


def _chosen(size: str, families: Sequence[str]) -> dict[str, cm.Config]:
    """What is measured of these families at a size, by the name in the table."""
    if size in SHAPES:
        return {family: shaped(FAMILIES[family], SHAPES[size]) for family in families}
    configs = {name: shaped(name) for name in PUBLISHED}
    return {
        f"{name}, {config.steps} of {config.width}": config
        for name, config in configs.items()
        if config.family in families
    }


def _title(size: str) -> str:
    if size in SHAPES:
        layers, width = SHAPES[size]
        return f"Encoder, {layers} layers of {width}"
    return "Encoder, layers and width as published"


_COLUMNS = (
    "family",
    "batch",
    "Cloze, ms",
    "transformers, ms",
    "their attention",
    "Cloze / transformers",
    "Cloze / our BERT",
    "packed / transformers",
    "packed bfloat16 / transformers",
)


def _row(figure: Figure) -> tuple[str, ...]:
    ratios = ("ratio", "against_bert", "packed", "packed_bfloat16")
    shape = f"{figure['rows']} x {figure['length']}"
    return (
        str(figure["family"]),
        shape if figure["pass"] == "forward" else f"{shape}, training",
        f"{1000 * float(figure['ours']):.1f}",
        f"{1000 * float(figure['theirs']):.1f}",
        str(figure["attention"]),
        *(f"{float(figure[name]):.2f}" if name in figure else "" for name in ratios),
    )


def _figures(name: str, config: cm.Config, arguments: argparse.Namespace) -> list[Figure]:
    pair = same_weights(config)
    bert = Shaped(shaped(FAMILIES["bert"], (config.steps, config.width))).eval().encoder
    packed = {"packed": cm.optimize_for_inference(pair.ours)}
    if torch.ops.mkldnn._is_mkldnn_bf16_supported():
        packed["packed_bfloat16"] = cm.optimize_for_inference(pair.ours, torch.bfloat16)
    figures = []
    for length in arguments.lengths:
        ids = drawn_ids(1, length)
        apart = difference(pair, ids)
        runs = _forward(pair, bert, packed, ids)
        with torch.inference_mode():
            times = interleaved(runs, seconds=arguments.seconds)
        figures.append(_figure(times, packed) | {"pass": "forward", "difference": apart})
        figures[-1] |= {"rows": 1, "length": length}
    if arguments.training and config.width == SHAPES["mini"][1]:
        rows, length = TRAINING
        times = interleaved(
            _training(pair, bert, drawn_ids(rows, length)), seconds=arguments.seconds
        )
        figures.append(_figure(times, ()) | {"pass": "training", "rows": rows, "length": length})
    return [{"family": name, **figure} for figure in figures]


def _figure(times: Mapping[str, list[float]], packed: Mapping[str, object] | tuple[()]) -> Figure:
    ours = times["ours"]
    fastest = min(
        (name for name in times if name.startswith("theirs ")),
        key=lambda name: statistics.median(times[name]),
    )
    theirs = times[fastest]
    return {
        "ours": statistics.median(ours),
        "theirs": statistics.median(theirs),
        "attention": fastest.removeprefix("theirs "),
        "ratio": median_ratio(ours, theirs),
        "against_bert": median_ratio(ours, times["bert"]),
        "rounds": len(ours),
        **{name: median_ratio(times[name], theirs) for name in packed},
    }


def drawn_ids(rows: int, length: int) -> Tensor:
    """Pieces [rows, length], by their length."""
    generator = torch.Generator().manual_seed(length)
    return torch.randint(10, VOCABULARY, (rows, length), generator=generator)


def difference(pair: Pair, ids: Tensor) -> float:
    """Largest difference of hidden states; RuntimeError where the models are not the same."""
    with torch.inference_mode():
        hidden = pair.ours(cm.Batch(input_ids=ids)).hidden
        others = [call(model, ids) for model in pair.theirs.values()]
    largest = max(float((hidden - other).abs().max()) for other in others)
    if largest > TOLERANCE:
        raise RuntimeError(f"hidden states differ by {largest:g}: not the same model")
    return largest


def call(model: Any, ids: Tensor) -> Tensor:
    """What their encoder makes of pieces [B, L]."""
    memories = {"use_mems": False} if model.config.model_type == "xlnet" else {}
    hidden: Tensor = model(input_ids=ids, **memories).last_hidden_state
    return hidden


def _forward(
    pair: Pair, bert: cm.Encoder, packed: Mapping[str, cm.Encoder], ids: Tensor
) -> Contestants:
    batch = cm.Batch(input_ids=ids)
    ours = {"ours": pair.ours, "bert": bert, **packed}
    return {
        **{name: lambda e=e: e(batch).hidden for name, e in ours.items()},
        **{f"theirs {name}": lambda m=m: call(m, ids) for name, m in pair.theirs.items()},
    }


def _training(pair: Pair, bert: cm.Encoder, ids: Tensor) -> Contestants:
    batch = cm.Batch(input_ids=ids)
    encoders = {"ours": copy.deepcopy(pair.ours).train(), "bert": copy.deepcopy(bert).train()}
    theirs = {name: copy.deepcopy(model).train() for name, model in pair.theirs.items()}

    def step(module: nn.Module, run: Callable[[], Tensor]) -> Callable[[], None]:
        def both() -> None:
            module.zero_grad()
            run().square().mean().backward()

        return both

    return {
        **{name: step(e, lambda e=e: e(batch).hidden) for name, e in encoders.items()},
        **{f"theirs {name}": step(m, lambda m=m: call(m, ids)) for name, m in theirs.items()},
    }


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forward", description=__doc__)
    sizes = [*SHAPES, "published"]
    parser.add_argument("--size", nargs="+", choices=sizes, default=sizes)
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS), metavar="L")
    parser.add_argument("--seconds", type=float, default=6.0, help="time for each row")
    parser.add_argument("--threads", type=int, help="torch threads (default: torch's choice)")
    parser.add_argument(
        "--no-training", dest="training", action="store_false", help="leave out training steps"
    )
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
