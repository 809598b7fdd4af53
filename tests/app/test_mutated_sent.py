"""What visitors send, and folders of runs, changed at random: read, refused or told as damaged."""

import gzip
import json
import lzma
import shutil
from functools import partial

import pytest

from app.runs import shipped
from app.runs.forms import tasks as run_tasks
from app.runs.reports.reports import Reports
from app.runs.reports.shown import Shown
from app.runs.runs import Runs
from core_models.data import sources
from core_models.errors import InputError
from core_models.tasks import sets
from tests.mutations import mutated, spoil, typed

TEXT = "The cat sees the dog.\nThe dog hears.\n\nA bird sees a cat.\nA cat sleeps.\n" * 8
ROWS = [
    ("The cat, it “sees”", "animal", 0.5),
    ("a house\tis old", "other", -1),
    ("我们", "other", 2),
]
TABLES = {
    "a.csv": "\n".join(["text,label,score", *(f'"{t}",{n},{s}' for t, n, s in ROWS * 9)]),
    "a.tsv": "\n".join(
        ["text\tlabel", *(f"{t.replace(chr(9), ' ')}\t{n}" for t, n, _ in ROWS * 9)]
    ),
    "a.jsonl": "\n".join(json.dumps({"text": t, "label": n, "score": s}) for t, n, s in ROWS * 9),
    "names.jsonl": "\n".join(
        json.dumps({"tokens": t.split(), "tags": ["O" for _ in t.split()]}) for t, _, _ in ROWS * 9
    ),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables of every kind that is taken."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path_factory.mktemp("tables") / "a.parquet"
    columns = {"text": [t for t, _, _ in ROWS], "label": [n for _, n, _ in ROWS]}
    parquet.write_table(pyarrow.table(columns), path)
    return {name: text.encode() for name, text in TABLES.items()} | {"a.parquet": path.read_bytes()}


def test_mutated_tables(gate, tables, make_runs):
    """As a text and as a labelled set, which is looked at as the form does."""
    inbox = make_runs().inbox
    for draw in gate.cases(60, 3_000):
        name = draw.choice(sorted(tables))
        content = mutated(tables[name], draw)
        typed(lambda name=name, content=content: inbox.save(name, content))

        def look(name=name, content=content):
            sent = inbox.save_labelled(name, content)
            run_tasks.look(inbox, {"set": sent["id"]})

        typed(look)
        shutil.rmtree(inbox.folder, ignore_errors=True)


def test_mutated_texts(gate, make_runs, tmp_path):
    """As they are sent, and packed ones as a training reads them."""
    inbox = make_runs().inbox
    raw = TEXT.encode()
    packed = {".txt": raw, ".txt.gz": gzip.compress(raw), ".txt.xz": lzma.compress(raw)}
    for draw in gate.cases(40, 3_000):
        content = mutated(raw, draw)
        typed(lambda content=content: inbox.save("a.txt", content))
        ending = draw.choice(sorted(packed))
        file = tmp_path / f"a{ending}"
        file.write_bytes(mutated(packed[ending], draw))
        typed(lambda file=file: sum(map(len, sources.read_documents(file))))
        shutil.rmtree(inbox.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Files of the shipped runs, beside their models."""
    root = tmp_path_factory.mktemp("shipped")
    shipped.install(root)
    ids = sorted(path.parent.name for path in root.glob("*/config.json"))
    assert ids
    return {
        run: {
            path.name: path.read_bytes()
            for path in (root / run).iterdir()
            if path.suffix in (".json", ".jsonl", ".txt")
        }
        for run in ids
    }


def test_mutated_runs(gate, folders, tmp_path):
    """The list and the page of a run live on; every other run is as it was."""
    runs = Runs(tmp_path, seconds=60)
    spoilt, whole = "spoilt", "whole"
    for run in (spoilt, whole):
        (tmp_path / run).mkdir()
    first = folders[min(folders)]
    for name, raw in first.items():
        (tmp_path / whole / name).write_bytes(raw)
    expected = Reports(runs).summary(whole)
    for draw in gate.cases(20, 3_000):
        files = folders[draw.choice(sorted(folders))]
        for path in (tmp_path / spoilt).iterdir():
            path.unlink()
        spoil(tmp_path / spoilt, draw, files)
        reports = Reports(runs)
        shown = Shown(reports)
        listed = {run["id"]: run for run in reports.overview()}
        assert listed[whole] == expected
        for look in (reports.live, reports.as_csv, reports.settings, reports.examples):
            typed(partial(look, spoilt))
        for run, other in ((spoilt, whole), (whole, spoilt)):
            typed(partial(shown.answer, {"run": run, "with": [other]}, None))
    runs.close()


def test_the_unspoiled_ones_are_read(tables, make_runs):
    """Else the gates above would look at nothing."""
    inbox = make_runs().inbox
    for name, content in tables.items():
        if "names" not in name:
            inbox.save(name, content)
        sent = inbox.save_labelled(name, content)
        found = run_tasks.look(inbox, {"set": sent["id"]})
        assert found["problem"] is None or "names" in name, found
    with pytest.raises(InputError):
        sets.load("none")
