"""``finetune``: a model learns a labelled set and is measured beside the baselines."""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.cli.arguments import add_json, number, whole
from core_models.cli.output import Output
from core_models.errors import InputError
from core_models.tasks.settings import Settings

if TYPE_CHECKING:
    from core_models.tasks.sets import TaskSet
    from core_models.training.finetune import Progress, Result

HELP = """Fine-tune a model on a labelled set and measure it beside the baselines.

SET is the name of a shipped set, or a .jsonl, .csv or .tsv file (also .xz). Without --dev 15 % of
the rows of a file are held out. Progress goes to standard error."""

_SETTINGS: dict[str, tuple[Callable[[str], float], str]] = {
    "learning_rate": (number, "peak learning rate (default: by the width)"),
    "epochs": (whole, "passes over the rows"),
    "batch_size": (whole, "rows for one update"),
    "seed": (whole, "of head, order and dropout"),
    "layer_decay": (number, "factor of the rate from each block to the one below"),
    "frozen": (whole, "lowest blocks that stay as they are"),
    "warmup": (number, "share of the steps in which the rate rises"),
    "dropout": (number, "rate everywhere (default: the model's own)"),
    "max_length": (whole, "longest input in pieces"),
}
_OTHERWISE = {"epochs": "; 5 where a config.json does not say"}
"""Defaults of a run that differ from those of this verb."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("model", metavar="MODEL", help="a shipped name, a model folder or a hub id")
    parser.add_argument("set", metavar="SET", help="a shipped set or a file")
    parser.add_argument("--dev", metavar="FILE", help="rows to measure on")
    parser.add_argument(
        "--kind",
        metavar="KIND",
        help="classify, pair, multilabel, regress, tag or answer (default: guessed)",
    )
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="which column holds text, text_b, label, labels, score, tokens, tags, context, "
        "question, answers or start; may be repeated",
    )
    for name, (kind, text) in _SETTINGS.items():
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=kind, metavar="X", help=text + _usual(name))
    parser.add_argument("--bf16", action="store_true", help="matrix products in bfloat16")
    parser.add_argument(
        "--apart", action="store_true", help="scored pairs: encode the texts apart (bi-encoder)"
    )
    parser.add_argument("--mix", action="store_true", help="tags: read a learned mix of all layers")
    parser.add_argument(
        "--from-scratch", action="store_true", help="start from random weights instead"
    )
    parser.add_argument("--save", metavar="FOLDER", help="write the fine-tuned model there")
    add_json(parser)


def _usual(name: str) -> str:
    default = getattr(Settings, name)
    return "" if default is None else f" (default: {default}{_OTHERWISE.get(name, '')})"


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Fine-tune, print and save."""
    import core_models as cm
    from core_models.tasks import sets
    from core_models.training.finetune import finetune

    if arguments.save:
        _make_room(Path(arguments.save))
    settings = _settings(arguments)
    task = sets.load(
        arguments.set, arguments.dev, kind=arguments.kind, columns=_columns(arguments.column)
    )
    for warning in task.warnings:
        sys.stderr.write(f"note: {warning}\n")
    result = finetune(cm.load(arguments.model), task, settings, progress=_tell)
    try:
        if arguments.save:
            result.model.save(arguments.save)
    finally:  # on a full disk the model is lost, what was measured of it is not
        if arguments.json:
            output.json(_summary(arguments, task, settings, result))
        else:
            _print(output, result)
    return 0


def _make_room(folder: Path) -> None:
    """See to it that the model can be written when it is done, not only then."""
    if folder.exists():
        raise InputError(f"{folder} exists already; name a new folder.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot write to {folder.parent}: {error.strerror}.") from None
    if not os.access(folder.parent, os.W_OK):
        raise InputError(f"Cannot write to {folder.parent}: no permission.")


def _settings(arguments: argparse.Namespace) -> Settings:
    given = {name: getattr(arguments, name) for name in _SETTINGS}
    return Settings(
        **{name: value for name, value in given.items() if value is not None},
        precision="bf16" if arguments.bf16 else "fp32",
        apart=arguments.apart,
        every_step=arguments.mix,
        pretrained=not arguments.from_scratch,
    )


def _columns(given: list[str]) -> dict[str, str]:
    found = {}
    for item in given:
        role, sign, column = item.partition("=")
        if not sign:
            raise InputError(f"--column {item!r} has no '='; write for example --column text=Body.")
        found[role] = column
    return found


def _tell(progress: "Progress") -> None:
    if not progress.metrics:
        return
    values = ", ".join(f"{name} {value:.3f}" for name, value in progress.metrics.items())
    sys.stderr.write(f"epoch {progress.epoch}: loss {progress.loss:.4f}, {values}\n")


def _summary(
    arguments: argparse.Namespace, task: "TaskSet", settings: Settings, result: "Result"
) -> dict[str, Any]:
    report = result.report.to_json()
    threshold = report["threshold"]
    return {
        "model": arguments.model,
        "set": {
            "name": task.name,
            "kind": task.kind,
            "labels": list(task.labels),
            "train_rows": len(task.train),
            "dev_rows": len(task.dev),
            "warnings": list(task.warnings),
        },
        "settings": asdict(settings),
        "best_epoch": result.best_epoch,
        "seconds": round(result.seconds, 2),
        **report,
        # JSON has no infinity: "never answer" is null.
        "threshold": None if threshold == float("-inf") else threshold,
        "baselines": [asdict(baseline) for baseline in result.baselines],
        "history": [record.to_json() for record in result.history],
    }


def _print(output: Output, result: "Result") -> None:
    names = list(result.report.metrics)
    rows = [["", *names]]
    for baseline in result.baselines:
        rows.append([baseline.title, *(_cell(baseline.metrics.get(name)) for name in names)])
    rows.append(["this model", *(_cell(result.report.metrics[name]) for name in names)])
    output.table(rows, right=range(1, len(names) + 1))
    output.line()
    if result.report.threshold is not None:
        output.line('best_f1: with the best threshold for "no answer", chosen on these very rows.')
    output.line(
        f"Best epoch {result.best_epoch} of {len(result.history)}, by {result.report.main}."
    )


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
