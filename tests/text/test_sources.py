import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from core_models.data import Preview, Source, build_store, preview, read_documents
from core_models.data.sources import fingerprint
from core_models.data.tables import head
from core_models.errors import InputError
from core_models.tokenizer import Tokenizer

ROWS = ["One here. Two there.\nThree.", "Vier, fünf; sechs. Sieben.", '"Acht," said he. "Neun."']
WANTED = [
    ["One here.", "Two there.", "Three."],
    ["Vier, fünf; sechs.", "Sieben."],
    ['"Acht," said he.', '"Neun."'],
]


def csv_text(delimiter: str = ",", name: str = "text") -> str:
    quoted = ('"' + row.replace('"', '""') + '"' for row in ROWS)
    lines = [delimiter.join(("id", name)), *(f"{n}{delimiter}{q}" for n, q in enumerate(quoted))]
    return "\n".join(lines) + "\n"


def json_text(field: str = "text") -> str:
    return "".join(json.dumps({"id": n, field: row}) + "\n" for n, row in enumerate(ROWS))


# --- kinds of files ------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(csv_text(delimiter), encoding="utf-8")
    assert list(read_documents(tmp_path / "a.csv")) == WANTED
    given = Source(paths=(tmp_path / "a.csv",), delimiter=delimiter)
    assert list(read_documents(given)) == WANTED


def test_a_single_column_may_hold_commas_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('sentence\n"Yes, he said."\nNo.\n')
    assert list(read_documents(tmp_path / "a.csv")) == [["Yes, he said."], ["No."]]


@pytest.mark.parametrize(
    ("name", "pack"),
    [("", lambda data: data), (".gz", gzip.compress), (".xz", lzma.compress)],
)
def test_text_and_tables_may_be_compressed(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    for plain, text in (
        ("a.tsv", csv_text("\t")),
        ("b.jsonl", json_text()),
        ("c.txt", "One.\nTwo.\n\nDrei.\n"),
    ):
        (tmp_path / f"{plain}{name}").write_bytes(pack(b"\xef\xbb\xbf" + text.encode()))
    assert list(read_documents(tmp_path / f"a.tsv{name}")) == WANTED
    assert list(read_documents(tmp_path / f"b.jsonl{name}")) == WANTED
    assert list(read_documents(tmp_path)) == [*WANTED, *WANTED, ["One.", "Two."], ["Drei."]]


def test_a_cell_may_hold_a_book(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\n" + "word " * 100_000 + "\n")
    assert len(next(iter(read_documents(tmp_path / "a.csv")))[0]) == 499_999


def test_a_column_or_field_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(csv_text(name="body"), encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(json_text("body"))
    for file in ("a.csv", "b.jsonl"):
        with pytest.raises(InputError, match=r"no column 'text'; choose one .*: id, body"):
            list(read_documents(tmp_path / file))
        with pytest.raises(InputError, match="no column 'boddy'; it has id, body"):
            list(read_documents(Source(paths=(tmp_path / file,), column="boddy")))
        assert list(read_documents(Source(paths=(tmp_path / file,), column="body"))) == WANTED


def test_cells_may_be_lists_and_nothing(tmp_path: Path) -> None:
    rows = [{"text": ["An owl. Cats do.", "Eh."]}, {"text": None}, {"text": "  "}, {"text": "Fog."}]
    (tmp_path / "a.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    assert list(read_documents(tmp_path / "a.jsonl")) == [["An owl.", "Cats do.", "Eh."], ["Fog."]]
    whole = Source(paths=(tmp_path / "a.jsonl",), paragraphs=False)
    assert list(read_documents(whole)) == [["An owl. Cats do.", "Eh."], ["Fog."]]


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = arrow.table({"id": [1, 2, 3], "text": ROWS})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert list(read_documents(tmp_path / "a.parquet")) == WANTED
    with pytest.raises(InputError, match=r"row 1: 'id' is int, not a text"):
        list(read_documents(Source(paths=(tmp_path / "a.parquet",), column="id")))
    (tmp_path / "b.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"b\.parquet is no parquet file"):
        list(read_documents(tmp_path / "b.parquet"))


def test_a_parquet_file_with_letters_that_are_none(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    cells = arrow.array([b"a cat", b"a d\xf5g"], arrow.binary()).view(arrow.string())
    parquet.write_table(arrow.table({"words": cells}), path)
    with pytest.raises(InputError, match=r"a\.parquet is damaged: a cell is no UTF-8 text"):
        list(read_documents(path))
    parquet.write_table(arrow.table({"words": ["a cat"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"words", b"w\xe1rds"))
    with pytest.raises(InputError, match=r"a\.parquet is no parquet file"):
        list(read_documents(path))


def test_a_parquet_file_with_columns_that_python_cannot_hold(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table([["a cat"], ["a dog"]], names=["text", "text"]), path)
    for read in (lambda: list(read_documents(path)), lambda: head(path, 2)):
        with pytest.raises(InputError, match=r"a\.parquet: two columns have the same name"):
            read()
    odd = (
        arrow.array([2**30], arrow.date32()),
        arrow.array([2**60], arrow.timestamp("ms")),
        arrow.array([1], arrow.timestamp("ms", tz="No/Where")),
    )
    for cells in odd:
        parquet.write_table(arrow.table({"text": ["a cat"], "when": cells}), path)
        assert list(read_documents(path)) == [["a cat"]]
        with pytest.raises(InputError, match=r"a\.parquet is damaged: "):
            head(path, 2)


def test_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"id": [1, 2, 3], "text": ROWS})
    assert list(read_documents(made)) == WANTED
    assert list(read_documents(made.to_iterable_dataset())) == WANTED
    unknown = datasets.IterableDataset.from_generator(lambda: ({"text": row} for row in ROWS))
    assert list(read_documents(unknown)) == WANTED
    parts = datasets.DatasetDict({"test": made})
    assert list(read_documents(Source(dataset=parts, split="test"))) == WANTED
    with pytest.raises(InputError, match="no split 'train'; it has test"):
        list(read_documents(parts))
    with pytest.raises(InputError, match="no column 'body'; it has id, text"):
        list(read_documents(Source(dataset=made, column="body")))
    assert fingerprint(made) == fingerprint(made)
    other = datasets.Dataset.from_dict({"id": [1], "text": ROWS[:1]})
    assert fingerprint(made) != fingerprint(other)
    assert fingerprint(made.to_iterable_dataset()) != fingerprint(other.to_iterable_dataset())


def test_a_dataset_by_its_name(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_text(json_text())
    assert list(read_documents(Source(dataset=str(tmp_path / "set")))) == WANTED
    with pytest.raises(InputError, match="cannot be opened"):
        list(read_documents(Source(dataset=str(tmp_path / "set"), split="missing")))


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_lines_may_end_as_old_programs_wrote_them(tmp_path: Path, name: str) -> None:
    cells = {"a.csv": ["text,n", "Hello.,1", '"One, ""two""\ror three.",2'], "a.tsv": ["text\tn"]}
    cells["a.tsv"] += ["Hello.\t1", '"One, ""two""\ror three."\t2']
    cells["a.jsonl"] = ['{"text": "Hello."}', '{"text": "One, \\"two\\"\\ror three."}']
    found = []
    for end in ("\r", "\n", "\r\n"):
        (tmp_path / name).write_bytes("".join(line + end for line in cells[name]).encode())
        found.append(list(read_documents(tmp_path / name)))
    assert found[0] == found[1] == found[2]
    assert found[0][0] == ["Hello."]
    assert " ".join(found[0][1]).startswith('One, "two"')


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", r"no text in a\.txt"),
        ("a.txt", b"\n \n", r"no text in a\.txt"),
        ("a.csv", b"", r"a\.csv is empty"),
        ("a.csv", b"text\n", r"no text in a\.csv"),
        ("a.jsonl", b"", r"a\.jsonl is empty"),
        ("a.txt", b"One.\nTw\xf6.\n", r"byte 7 \(0xf6, in line 2\)"),
        ("a.txt", b"\xef\xbb\xbfOne.\nTw\xf6.\n", r"byte 10 \(0xf6, in line 2\)"),
        ("a.csv", b"text\nGr\xfc\xdfe\n", r"byte 7 \(0xfc, in line 2\)"),
        ("a.txt", "One.".encode("utf-16"), "UTF-16"),
        ("a.txt", b"\x7fELF\x02\x00\x00", r"a binary file \(byte 5 is zero\)"),
        ("a.txt", b"One.\nTw\x00o.\n", r"a binary file \(byte 7 is zero\)"),
        ("a.txt", b"One.\n" * 2000 + b"\x00\n", r"a binary file \(byte 10000 is zero\)"),
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', r"a\.jsonl, line 2 is not JSON"),
        ("a.jsonl", b'{"text": "a"}\n[1]\n', "line 2: list, not an object"),
        ("a.jsonl", b'{"text": "a"}\n{"body": "b"}\n', "line 2 has no field 'text'; it has body"),
        ("a.jsonl", b'{"text": "a"}\n{"text": 5}\n', "line 2: 'text' is int"),
        ("a.csv", b"id,text\n1,a\n2,b,c\n", "line 3: cells 3, columns 2"),
        ("a.csv", b'id,text\n1,a\n2,"b\n', "unexpected end of data"),
        ("a.csv", b"a,a\n1,2\n", "two columns have the same name"),
        (
            "a.jsonl",
            b'{"text": "ab\\ud800"}',
            r"line 1: 'text' holds half a character .*ud800, after 2",
        ),
        ("a.jsonl", b'{"text": ["a", "\\udfff b"]}', r"line 1: 'text' holds half a character"),
        ("a.jsonl", b'{"text": "ab\\u0000"}', r"line 1: 'text' holds a zero .*after 2"),
        ("a.jsonl", b'{"text": ' + b"9" * 5000 + b"}", "not JSON: a number has thousands of"),
        ("a.jsonl", b'{"text": ' + b"[" * 99_999, "line 1 is not JSON: it is nested too deeply"),
        ("a.txt.gz", b"plain", r"a\.txt\.gz is damaged"),
        ("a.txt.gz", gzip.compress(b"cut off" * 99, mtime=0)[:30], r"a\.txt\.gz is damaged"),
        ("a.csv.xz", lzma.compress(b"cut off" * 99)[:40], r"a\.csv\.xz is damaged"),
        ("a.doc", b"x", r"a\.doc has an ending that is not known; allowed: \.csv"),
    ],
)
def test_unreadable_files(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_documents(tmp_path / name))


def test_unusable_sources(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        list(read_documents(tmp_path / "a.txt"))
    with pytest.raises(InputError, match="holds no file that can be read"):
        list(read_documents(tmp_path))
    with pytest.raises(InputError, match="either files or a dataset"):
        Source()
    with pytest.raises(InputError, match="either files or a dataset"):
        Source(paths=("a",), dataset="b")
    with pytest.raises(InputError, match="one character"):
        Source(paths=("a",), delimiter=", ")
    with pytest.raises(InputError, match="most_bytes 0"):
        Source(paths=("a",), most_bytes=0)
    with pytest.raises(InputError, match="int is no source"):
        list(read_documents(5))


def test_large_files_are_refused_also_packed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word word\n" * 100)
    (tmp_path / "b.txt.xz").write_bytes(lzma.compress(b"word word\n" * 100))
    for name in ("a.txt", "b.txt.xz"):
        exact = Source(paths=(tmp_path / name,), most_bytes=1000)
        assert len(next(iter(read_documents(exact)))) == 100
        with pytest.raises(InputError, match="more than the 999 bytes"):
            list(read_documents(Source(paths=(tmp_path / name,), most_bytes=999)))


def test_a_number_of_documents(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json_text() + "broken")
    some = Source(paths=(tmp_path / "a.jsonl",), most_documents=2)
    assert list(read_documents(some)) == WANTED[:2]


# --- preview, fingerprint and store --------------------------------------------------------------


def test_previews(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(csv_text(), encoding="utf-8")
    assert preview(tmp_path / "a.csv", 2) == Preview(WANTED[:2], ["id", "text"], "text", [])
    (tmp_path / "a.txt").write_text("One.\nTwo.\n")
    found = preview(tmp_path / "a.txt")
    assert (found.documents, found.columns, found.column) == ([["One.", "Two."]], [], None)
    assert [note[:24] for note in found.notes] == ["All text is one document"]
    (tmp_path / "b.txt").write_text("This is a sentence. " * 30 + "\n\nOne.\n")
    notes = " ".join(preview(tmp_path / "b.txt").notes)
    assert "single sentence" in notes
    assert "look like paragraphs" in notes
    split = preview(Source(paths=(tmp_path / "b.txt",), paragraphs=True))
    assert (len(split.documents[0]), split.notes) == (30, [])


def test_fingerprints_follow_content_and_options(tmp_path: Path) -> None:
    for name, text in (("a", "x\n"), ("b", "y\n")):
        (tmp_path / f"{name}.txt").write_text(text)
    a = Source(paths=(tmp_path / "a.txt",))
    assert fingerprint(a) == fingerprint(tmp_path / "a.txt") == fingerprint([tmp_path / "a.txt"])
    others = [
        Source(paths=(tmp_path / "b.txt",)),
        Source(paths=(tmp_path / "a.txt",), paragraphs=True),
        Source(paths=(tmp_path / "a.txt",), most_documents=1),
    ]
    assert len({fingerprint(s) for s in [a, *others]}) == 4


def test_any_source_becomes_a_store(tokenizer: Tokenizer, tmp_path: Path) -> None:
    rows = [{"body": f"The river is long. It has {n} bridges."} for n in range(40)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = Source(paths=(tmp_path / "a.jsonl",), column="body")
    for name in ("full_sentences", "sentence_order", "recurrent"):
        store = build_store(tmp_path / name, source, tokenizer, format=name, max_length=32)
        assert store.corpus.num_documents == 40
        assert store.metadata["examples"]["held_out"] >= 1
    with pytest.raises(InputError, match="cuts documents always alike"):
        build_store(tmp_path / "x", source, tokenizer, format="single", max_length=32, copies=2)
    with pytest.raises(InputError, match="No input format"):
        build_store(tmp_path / "y", source, tokenizer, format="pairs", max_length=32)
    assert not (tmp_path / "y").exists()


def test_one_enormous_line_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A packed file of a few hundred KB may hold a line larger than the memory."""
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a" * 50_000_000, 1))
    unpacked = []
    plain = gzip.GzipFile.readline

    def counted(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        unpacked.append(line := plain(self, size))
        return line

    monkeypatch.setattr(gzip.GzipFile, "readline", counted)
    with pytest.raises(InputError, match="more than the 1,000 bytes"):
        list(read_documents(Source(paths=(tmp_path / "a.txt.gz",), most_bytes=1000)))
    assert sum(map(len, unpacked)) == 1001
