"""Do the gates see what they are for? Each safeguard is taken out, and a named test must fail.

``python -m benchmarks.mutants`` copies the tree, takes one safeguard out of the copy, runs the test
that stands for it, and prints a table. A mutant that survives ends the command with an error.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Report, Table, environment, run_main

ROOT = Path(__file__).resolve().parent.parent
FOUND = "found"
COPIED = ("app", "assets", "benchmarks", "core_models", "docs", "tests", "viz", "zoo")


@dataclass(frozen=True)
class Mutant:
    """A safeguard: where it stands, what is there without it, and which test misses it."""

    name: str
    file: str
    old: str
    new: str
    test: str


MUTANTS = (
    Mutant(
        "the lock of a run's folder",
        "core_models/training/durable.py",
        "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        "tests/training/test_folder.py -k two_writers",
    ),
    Mutant(
        "fsync before the rename",
        "core_models/training/durable.py",
        "        sync_file(file)\n        name =",
        "        name =",
        "tests/training/test_durable_kept.py -k before_the_rename",
    ),
    Mutant(
        "what failed half way is removed",
        "core_models/training/durable.py",
        "        shutil.rmtree(aside, ignore_errors=True)\n        raise",
        "        raise",
        "tests/training/test_full_disk.py -k half_way",
    ),
    Mutant(
        "the checksums of the manifest",
        "core_models/training/durable.py",
        "if _sha256(path / name) != expected",
        "if False and _sha256(path / name) != expected",
        "tests/core/test_mutated_files.py -k stores",
    ),
    Mutant(
        "the start time beside a process's number",
        "core_models/training/durable.py",
        "self.started is not None and _started(self.pid) == self.started",
        "_started(self.pid) is not None",
        "tests/training/test_folder.py -k another_boot",
    ),
    Mutant(
        "a torn line is closed",
        "core_models/training/durable.py",
        '("\\n" if torn else "")',
        '""',
        "tests/training/test_folder.py -k torn_at_every_byte",
    ),
    Mutant(
        "reports after a resume replace the earlier ones",
        "core_models/training/folder.py",
        "kept.pop()",
        "break",
        "tests/training/test_folder.py -k repeated_after_a_resume",
    ),
    Mutant(
        "errors of the tokenizers' library are typed",
        "core_models/tokenizer/checks.py",
        'raise InputError(f"{what}: {error}") from error',
        "raise",
        "tests/core/test_mutated_files.py -k tokenizers",
    ),
    Mutant(
        "a damaged run harms no other",
        "app/runs/damage.py",
        "ODD = (TypeError, AttributeError, LookupError",
        "ODD = (LookupError, LookupError",
        "tests/app/test_run_shown.py -k damaged",
    ),
    Mutant(
        "the name that a request came by",
        "app/serving/guard.py",
        "if not names.answer(_name(host)):",
        "if False:",
        "tests/app/test_hosted.py -k another_name",
    ),
    Mutant(
        "the header of every change",
        "app/runs/routes.py",
        'if request.method == "POST" and request.headers.get(HEADER) != "train":',
        "if False:",
        "tests/app/test_train_routes.py -k header",
    ),
    Mutant(
        "a sentence in place of error: null",
        "app/serving/server.py",
        "body = NO_WORD.sub(WORD, body)",
        "pass",
        "tests/app/test_wrong_calls.py -k endpoints",
    ),
    Mutant(
        "an error of one question is its own",
        "app/serving/batcher.py",
        "if isinstance(result, BaseException):",
        "if False:",
        "tests/app/test_batcher.py -k reaches_its_own",
    ),
    Mutant(
        "markup in a chart's text is escaped",
        "viz/figure.py",
        '.replace("<", "&lt;")',
        "",
        "tests/viz/test_figure.py",
    ),
    Mutant(
        "only runs of the folder",
        "app/runs/runs.py",
        " and _lies_in(folder.config_path, self.root)",
        "",
        "tests/app/test_runs.py -k link_out",
    ),
)


def measure(arguments: argparse.Namespace) -> Report:
    """Try every mutant; the copy is made once."""
    chosen = [mutant for mutant in MUTANTS if arguments.only in mutant.name]
    if not chosen:
        names = ", ".join(mutant.name for mutant in MUTANTS)
        raise SystemExit(f"No mutant has {arguments.only!r} in its name; there are: {names}.")
    for mutant in chosen:
        if mutant.old not in (ROOT / mutant.file).read_text(encoding="utf-8"):
            raise SystemExit(f"{mutant.name}: {mutant.file} no longer says {mutant.old!r}.")
    with tempfile.TemporaryDirectory(prefix="cloze-mutants-") as folder:
        copy = Path(folder) / "cloze"
        copy.mkdir()
        for path in ROOT.iterdir():
            if path.name in COPIED:
                skipped = shutil.ignore_patterns("__pycache__")
                shutil.copytree(path, copy / path.name, ignore=skipped, symlinks=True)
            elif path.is_file():
                shutil.copy(path, copy)
        rows = [_try(mutant, copy) for mutant in chosen]
    note = "Each is one change of one file, made in a copy; the test is run by itself."
    columns = ("without", "test", "result", "seconds")
    results: list[dict[str, float | int | str]] = [
        {"mutant": row[0], "result": row[2]} for row in rows
    ]
    table = Table("Mutants", columns, rows, note)
    return Report([table], environment(), results)


def _try(mutant: Mutant, copy: Path) -> tuple[str, ...]:
    path = copy / mutant.file
    whole = path.read_text(encoding="utf-8")
    began = time.perf_counter()
    found = []
    try:
        for text in (whole.replace(mutant.old, mutant.new), whole):
            path.write_text(text, encoding="utf-8")
            asked = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                "-n",
                "0",
            ]
            done = subprocess.run(
                [*asked, *mutant.test.split()],
                cwd=copy,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                check=False,
            )
            found.append(done.returncode)
    finally:
        path.write_text(whole, encoding="utf-8")
    # 1 = tests failed; 5 = none was found, 2 to 4 = they could not be run.
    result = {(1, 0): FOUND}.get(
        tuple(found), f"NOT FOUND (with it {found[1]}, without {found[0]})"
    )
    sys.stderr.write(f"{mutant.name}: {result}\n")
    return mutant.name, f"`{mutant.test}`", result, f"{time.perf_counter() - began:.0f}"


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="part of a name: these mutants alone")
    return parser


def main() -> None:
    """The command line; it ends with an error where a mutant has survived."""
    done = run_main(measure, build_parser())
    sys.exit(any(figure["result"] != FOUND for figure in done.figures))


if __name__ == "__main__":
    main()
