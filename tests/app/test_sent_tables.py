"""Tables that visitors send, of every kind and damage: read whole, or refused with what to do."""

import gzip
import io
import json
import lzma

import pytest

from app.runs.data.texts import Inbox
from app.runs.forms import tasks as run_tasks
from core_models import InputError

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
TEXTS = [f"The cat number {n} sees a dog." for n in range(40)]
LABELS = [("good", "bad")[n % 2] for n in range(40)]
CSV = "text,label\n" + "".join(f"{t},{label}\n" for t, label in zip(TEXTS, LABELS, strict=True))
LINES = "".join(
    json.dumps({"text": t, "label": label}) + "\n" for t, label in zip(TEXTS, LABELS, strict=True)
)


def packed(columns=None, **changes):
    """The bytes of a Parquet table."""
    columns = {"text": TEXTS, "label": LABELS} | changes if columns is None else columns
    table = columns if isinstance(columns, arrow.Table) else arrow.table(columns)
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


WHOLE = packed()


@pytest.fixture
def inbox(tmp_path):
    return Inbox(tmp_path / "runs")


def learnt(inbox, name, content):
    """What the form for fine-tuning says of a table; its problem as the error that it was."""
    found = run_tasks.look(inbox, {"set": inbox.save_labelled(name, content)["id"]})
    if found["problem"]:
        raise InputError(found["problem"])
    return found


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV.encode()),
        ("a.tsv", CSV.replace(",", "\t").encode()),
        ("a.jsonl", LINES.encode()),
        ("a.json", LINES.encode()),
        ("a.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("a.jsonl", b"\xef\xbb\xbf" + LINES.encode()),
        ("a.parquet", WHOLE),
        ("A.PARQUET", WHOLE),
        ("a.csv", WHOLE),  # its bytes say what it is
        ("a.pq", WHOLE),
        ("a.parquet", packed(text=arrow.array(TEXTS, arrow.large_string()))),
        ("a.parquet", packed(label=arrow.array(LABELS).dictionary_encode())),
    ],
)
def test_a_table_is_read_whole_whatever_it_is_called(inbox, name, content):
    text = inbox.save(name, content)
    assert (text.columns[text.column], text.documents) == ("text", 40)
    found = learnt(inbox, name, content)
    assert found["labels"] == ["bad", "good"]
    assert found["train"]["rows"] + found["dev"]["rows"] == 40


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        ([float(n % 2) for n in range(40)], ["0", "1"]),
        ([n % 2 + 0.5 for n in range(40)], ["0.5", "1.5"]),
        ([n % 2 for n in range(40)], ["0", "1"]),
        ([bool(n % 2) for n in range(40)], ["False", "True"]),
    ],
)
def test_labels_of_any_kind_are_told_apart(inbox, labels, read):
    assert learnt(inbox, "a.parquet", packed(label=labels))["labels"] == read


NO_PARQUET = "^a.parquet is no Parquet table: .* begins with PAR1. Send a table of text as .csv"
BROKEN = "^a.parquet is no parquet file, or not a whole one .*; send it again, or save it anew"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.parquet", b"", "^a.parquet is empty"),
        ("a.parquet", CSV.encode(), NO_PARQUET),
        ("a.parquet", b"ARROW1" + WHOLE, NO_PARQUET),
        ("a.parquet", WHOLE[:4], BROKEN),
        ("a.parquet", WHOLE[: len(WHOLE) // 2], BROKEN),
        ("a.parquet", WHOLE[:-4], BROKEN),
        ("a.parquet", WHOLE[:100] + b"\xff" * 60 + WHOLE[160:], "is damaged: .*; send it again"),
        ("a.parquet", b"PARE" + WHOLE[4:], "^a.parquet is encrypted. Save it without a password"),
        ("a.parquet", WHOLE + bytes(20 << 20), "has 20.0 MB and the page takes up to 20 MB"),
        ("a.parquet", packed(text=[], label=[]), "holds no rows"),
        ("a.parquet", packed(arrow.table({})), "holds no rows"),
        (
            "a.parquet",
            packed(arrow.Table.from_arrays([TEXTS, LABELS], names=["text", "text"])),
            "same name: 'text'; give each a name of its own",
        ),
        ("a.csv.gz", gzip.compress(CSV.encode()), "a gzip file"),
        ("a.csv.xz", lzma.compress(CSV.encode()), "an xz file"),
        ("a.csv", CSV.replace("cat", "caf\u00e9").encode("cp1252"), "not UTF-8"),
        ("a.csv", CSV.replace("cat", "\u4e2d\u6587").encode("gbk"), "not UTF-8"),
        ("a.csv", b"text,label\n", "holds no rows"),
        ("a.csv", LINES.encode(), "^a.csv holds an object of JSON on each line; call it .jsonl"),
        ("a.jsonl", CSV.encode(), "line 1(:| is) not JSON"),
        ("a.json", json.dumps([{"text": t} for t in TEXTS]).encode(), "not an object"),
        (
            "a.jsonl",
            LINES.replace('"text"', '"text": "gone", "text"').encode(),
            "line 1: it names 'text' twice; give each value a name of its own",
        ),
    ],
)
def test_what_cannot_be_read_whole_is_refused_with_what_to_do(inbox, name, content, words):
    """JSON Lines called .csv lost its first row to the names of columns, and was cut at commas."""
    for read in (lambda: inbox.save(name, content), lambda: learnt(inbox, name, content)):
        with pytest.raises(InputError, match=words):
            read()


def test_cells_between_commas_are_no_tsv(inbox):
    """The whole line was learnt, the label with it."""
    with pytest.raises(InputError, match=r"^a\.tsv has no tab in its first line, but ','; call it"):
        inbox.save("a.tsv", CSV.encode())
    assert inbox.save("a.tsv", ("text\n" + "\n".join(TEXTS)).encode()).documents == 40


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"text": [None, *TEXTS[1:]]}, "row 1: column 'text' holds no text; write one, or leave"),
        ({"label": [*LABELS[1:], None]}, "row 40: column 'label' holds no label; write one, or"),
        ({"text": [{"a": t} for t in TEXTS]}, "'text' holds an object, not a text: .*; choose"),
        ({"text": [[t] for t in TEXTS]}, "'text' holds a list, not a text: .*The cat.*; choose"),
        ({"label": [{"a": t} for t in LABELS]}, "'label' holds an object, not one label; choose"),
        ({"image": [b"\x89PNG"] * 40}, "'image' holds bytes, .*; leave it out, or save it as text"),
        ({"label": [n / 7 if n else float("inf") for n in range(40)]}, "finite number: inf"),
    ],
)
def test_cells_that_cannot_be_learnt_from_are_told(inbox, changes, words):
    with pytest.raises(InputError, match=words):
        learnt(inbox, "a.parquet", packed(**changes))
