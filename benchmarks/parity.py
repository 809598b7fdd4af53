"""How far Cloze and transformers are apart, for every family and head that both have.

Each model is a tiny random one of transformers with weights, biases and norms far from their
initial values; it is saved by transformers and read by Cloze. ``python -m benchmarks.parity``
prints the largest differences and writes them into docs/parity.md; with ``--check`` it writes
nothing and fails where a difference is above 1e-5, or 1e-4 for a gradient.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks import parity_xlnet
from benchmarks.families import insert
from benchmarks.measure import Table
from benchmarks.parity_cases import (
    CASES,
    GRADIENTS,
    LONGEST,
    PADDINGS,
    PLAIN,
    ROWS,
    Case,
    Figure,
    apart,
)
from benchmarks.parity_models import Bare, batch_of, inputs, written
from core_models.batch import Batch
from core_models.checkpoints.files import to_their_tensors
from core_models.families import FAMILIES
from core_models.network.trace import STEP_SITES, Trace

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "parity.md"


def compare(case: Case) -> Iterator[Figure]:
    """Every figure of one model."""
    reference = case.reference()
    with tempfile.TemporaryDirectory() as folder:
        model = written(reference, Path(folder))
    if set(model.heads) != set(case.heads) or model.config.family != case.family:
        raise RuntimeError(f"{case.name} was read as {model.config.family} with {[*model.heads]}")
    for column, (length, pad) in {**PADDINGS, LONGEST: (case.longest, "right")}.items():
        values = _inputs(reference, length, pad)
        fast, traced = (_outputs(case, model, reference, values, path) for path in (False, True))
        for head in case.heads:
            yield Figure(case.family, case.variation, head, column, fast[head], traced[head])
    plain = _rows(model, reference, _inputs(reference, *PADDINGS[PLAIN]))
    gradient = _gradients(case, model, reference, _inputs(reference, *PADDINGS["right"]))
    for head in case.heads:
        yield Figure(case.family, case.variation, head, ROWS, plain)
        yield Figure(case.family, case.variation, head, GRADIENTS, gradient)


def _inputs(reference: Any, length: int, pad: str) -> dict[str, Tensor]:
    config = reference.config
    segments = getattr(config, "type_vocab_size", 2) or 1  # XLNet: same or other, no table
    return inputs(length, pad, pad_id=config.pad_token_id, segments=segments)


def _outputs(
    case: Case, model: Bare, reference: Any, values: Mapping[str, Tensor], traced: bool
) -> dict[str, float]:
    """Largest difference of each head's logits at real tokens."""
    real = values["attention_mask"].bool()
    with torch.no_grad():
        theirs = reference(**values)
        ours = model.logits(batch_of(values), Trace(STEP_SITES) if traced else None)
    return {
        head: apart(_real(ours[head], real, model), _real(_theirs(theirs, name), real, model))
        for head, name in case.heads.items()
    }


def _rows(model: Bare, reference: Any, values: Mapping[str, Tensor]) -> float:
    """Difference of the hidden states where rows of the piece table are given in place of ids."""
    batch = batch_of(values)
    assert batch.input_ids is not None
    with torch.no_grad():
        rows = model.encoder.embeddings.pieces(batch.input_ids)
        ours = model.encoder(
            Batch(
                embeddings=rows, attention_mask=batch.attention_mask, segment_ids=batch.segment_ids
            )
        ).hidden
        rest = {name: value for name, value in values.items() if name != "input_ids"}
        theirs = reference.base_model(inputs_embeds=rows, **rest).last_hidden_state
    return apart(ours, theirs)


def _gradients(case: Case, model: Bare, reference: Any, values: Mapping[str, Tensor]) -> float:
    """Largest difference of any gradient of the mean square of all heads, in train mode."""
    real = values["attention_mask"].bool()
    theirs = reference.train()(**values)
    _loss([_real(_theirs(theirs, name), real, model) for name in case.heads.values()]).backward()
    ours = model.train().logits(batch_of(values))
    _loss([_real(ours[head], real, model) for head in case.heads]).backward()
    wanted = {n: p.grad for n, p in reference.named_parameters() if p.grad is not None}
    grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    found = to_their_tensors(model.form, grads, model.config)
    if found.keys() != wanted.keys():
        raise RuntimeError(f"{case.name}: gradients of {sorted(found.keys() ^ wanted.keys())}")
    return max(apart(found[name], grad) for name, grad in wanted.items())


def _loss(logits: Sequence[Tensor]) -> Tensor:
    return torch.stack([x.square().mean() for x in logits]).sum()


def _theirs(output: Any, name: str | tuple[str, ...]) -> Tensor:
    """Their logits in our shape: one score of a text is a number, not a row of one."""
    if isinstance(name, tuple):
        return torch.stack([getattr(output, part) for part in name], -1)
    logits: Tensor = getattr(output, name)
    return logits.squeeze(-1) if logits.shape[-1] == 1 else logits


def _real(x: Tensor, real: Tensor, model: Bare) -> Tensor:
    """Real tokens of [B, L, ...], or rows of [B, ...] whose token for the whole text is real."""
    if x.shape[:2] == real.shape:
        return x[real]
    last = model.config.task is not None and model.config.task.token == "last"
    return x[real[:, -1 if last else 0]]


def table(title: str, figures: Sequence[Figure], note: str, kind: str = "head") -> Table:
    """One row per variation and head, one column per input."""
    columns = list(dict.fromkeys(f.column for f in figures))
    cells = {(f.variation, f.head, f.column): _show(f) for f in figures}
    rows = dict.fromkeys((f.variation, f.head) for f in figures)
    body = [
        (f"{variation}: {head.replace('_', ' ')}", *(cells[variation, head, c] for c in columns))
        for variation, head in rows
    ]
    return Table(title, (f"model: {kind}", *columns), body, note)


def _show(figure: Figure) -> str:
    parts = (figure.fast, figure.traced)
    return " / ".join(f"{x:.0e}" for x in parts if x is not None)


def measure(cases: Sequence[Case] = CASES) -> tuple[list[Figure], list[Table]]:
    """All figures and their tables."""
    figures: list[Figure] = []
    tables = []
    for family in dict.fromkeys(case.family for case in cases):
        own = [case for case in cases if case.family == family]
        found = [figure for case in own for figure in compare(case)]
        figures += found
        lengths = list(dict.fromkeys(str(case.longest) for case in own))
        note = f"Longest input: {', '.join(lengths)} tokens."
        tables.append(table(FAMILIES[family].title, found, note))
    if any(case.family == "xlnet" for case in cases):
        for title, source, kind, note in parity_xlnet.TABLES:
            found = [*source()]
            figures += found
            tables.append(table(title, found, note, kind))
    return figures, tables


def quiet() -> None:
    """No progress bars while models are written."""
    from transformers.utils import logging

    logging.disable_progress_bar()


def main() -> None:
    """Measure, print, and write the document or check it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parity", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail above tolerance")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    quiet()
    figures, tables = measure()
    versions = [f"{name} {version(name)}" for name in ("torch", "transformers")]
    outputs = [x for f in figures if f.column != GRADIENTS for x in (f.fast, f.traced or 0.0)]
    gradients = [f.fast for f in figures if f.column == GRADIENTS]
    summary = (
        f"Largest difference of any output: {max(outputs):.1e}; of any gradient: "
        f"{max(gradients):.1e}. Measured with {', '.join(versions)}, float32, one thread."
    )
    text = "\n\n".join([summary, *(part.to_markdown() for part in tables)])
    sys.stdout.write(text + "\n")
    if not arguments.check:
        DOCUMENT.write_text(insert(DOCUMENT.read_text("utf-8"), text), "utf-8")
    failed = [f for f in figures if not f.passes]
    for figure in failed:
        sys.stderr.write(f"too far apart: {figure}\n")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
