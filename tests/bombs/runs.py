"""Folders of runs that are bombs. Each begins as a finished run that is read."""

import json
from pathlib import Path
from typing import Any

from tests.bombs.kind import GIGABYTE, endless, pipe, sparse

KIND = "run"


def change(folder: Path, name: str, /, **values: Any) -> None:
    """Other values in a file of the run."""
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def million_reports(folder: Path) -> None:
    lines = [f'{{"step":{step},"loss":3.25,"seconds":1.5}}\n' for step in range(1_000_000)]
    (folder / "metrics.jsonl").write_text("".join(lines))


def same_report(folder: Path) -> None:
    (folder / "metrics.jsonl").write_text('{"step":1,"loss":3.25,"seconds":1.5}\n' * 500_000)


def sparse_reports(folder: Path) -> None:
    sparse(folder / "metrics.jsonl", 2 * GIGABYTE, b'{"step":1,"loss":1}\n')


def endless_reports(folder: Path) -> None:
    endless(folder / "metrics.jsonl")


def piped_reports(folder: Path) -> None:
    pipe(folder / "metrics.jsonl")


def deep_report(folder: Path) -> None:
    deep = "[" * 10**6 + "]" * 10**6
    (folder / "metrics.jsonl").write_text('{"step":1,"loss":' + deep + "}\n")


def wide_report(folder: Path) -> None:
    figures = {f"figure {number}": 1.0 for number in range(20_000)}
    lines = [json.dumps({"step": step} | figures) for step in range(20)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def endless_step(folder: Path) -> None:
    (folder / "metrics.jsonl").write_text('{"step":' + "9" * 4000 + ',"loss":1}\n' * 3)


def huge_settings(folder: Path) -> None:
    change(folder, "config.json", steps=10**18, batch_size=10**18, accumulate=10**12)


def billion_layers(folder: Path) -> None:
    model = {"size": "bert-mini", "overrides": {"layers": 10**9, "width": 10**12}}
    change(folder, "config.json", model=model)


def deep_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"name":' + "[" * 10**6 + "]" * 10**6 + "}")


def long_name(folder: Path) -> None:
    change(folder, "config.json", name="n" * 10**5, description="d" * 10**6)


def sparse_config(folder: Path) -> None:
    sparse(folder / "config.json", 4 * GIGABYTE, b"{")


def piped_config(folder: Path) -> None:
    pipe(folder / "config.json")


def endless_status(folder: Path) -> None:
    endless(folder / "status.json")


def piped_status(folder: Path) -> None:
    pipe(folder / "status.json")


def huge_status(folder: Path) -> None:
    change(folder, "status.json", step=10**400, steps=10**400, updated=1e308, parameters=10**400)


def sparse_examples(folder: Path) -> None:
    sparse(folder / "validation.json", 4 * GIGABYTE, b"{")


def piped_notes(folder: Path) -> None:
    for name in ("page.json", "launch.json", "evaluation.json", "validation.json", "owner", "held"):
        pipe(folder / name)


def piped_log(folder: Path) -> None:
    pipe(folder / "log.txt")
    pipe(folder / "output.txt")


def sparse_log(folder: Path) -> None:
    sparse(folder / "log.txt", 64 * GIGABYTE)


def piped_queue(folder: Path) -> None:
    pipe(folder / "queue")


def endless_queue(folder: Path) -> None:
    endless(folder / "queue")


def many_checkpoints(folder: Path) -> None:
    (folder / "snapshots").mkdir(exist_ok=True)
    for step in range(3_000):
        (folder / "snapshots" / f"step-{'9' * 100}{step}").mkdir()


def many_runs(folder: Path) -> None:
    for number in range(500):
        (folder.parent / f"a{number}").mkdir()
        (folder.parent / f"a{number}" / "config.json").write_text("{}")


def many_entrants(folder: Path) -> None:
    entrants = [{"name": f"e{n}", "size": "bert-mini"} for n in range(20_000)]
    (folder / "config.json").unlink()
    (folder / "experiment.json").write_text(json.dumps({"name": "r", "entrants": entrants}))
    rows = [{"name": f"e{n}", "family": "bert", "state": "running"} for n in range(20_000)]
    (folder / "race.json").write_text(json.dumps({"state": "running", "table": rows}))


def folder_of_itself(folder: Path) -> None:
    (folder / "checkpoints").mkdir(exist_ok=True)
    (folder / "checkpoints" / "step-1").symlink_to(folder, target_is_directory=True)
    (folder.parent / "again").symlink_to(folder.parent, target_is_directory=True)


def endless_model(folder: Path) -> None:
    model = folder / "model"
    model.mkdir(exist_ok=True)
    for name in ("config.json", "tokenizer.json", "vocab.txt", "model.safetensors"):
        endless(model / name)


def piped_model(folder: Path) -> None:
    model = folder / "model"
    model.mkdir(exist_ok=True)
    for name in ("config.json", "tokenizer.json", "vocab.txt", "model.safetensors"):
        pipe(model / name)


def sparse_vocabulary(folder: Path) -> None:
    (folder / "model").mkdir(exist_ok=True)
    sparse(folder / "model" / "vocab.txt", 4 * GIGABYTE)


MAKERS = (
    million_reports,
    same_report,
    sparse_reports,
    endless_reports,
    piped_reports,
    deep_report,
    wide_report,
    endless_step,
    huge_settings,
    billion_layers,
    deep_config,
    long_name,
    sparse_config,
    piped_config,
    endless_status,
    piped_status,
    huge_status,
    sparse_examples,
    piped_notes,
    piped_log,
    sparse_log,
    piped_queue,
    endless_queue,
    many_checkpoints,
    many_runs,
    many_entrants,
    folder_of_itself,
    endless_model,
    piped_model,
    sparse_vocabulary,
)
