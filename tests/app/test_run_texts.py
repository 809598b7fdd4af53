"""Texts that visitors send: what is refused in plain words, tables, names of files."""

import pytest

from app import run_texts
from core_models import InputError

CONFIG = {
    "model": {"size": "bert-mini"},
    "data": {"texts": [], "column": "text"},
    "steps": 100,
}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"  \n ", "empty"),
        (b"one line only", "one line"),
        ("gr\u00fc\u00dfe\nund mehr".encode("latin-1"), "not UTF-8"),
        ("two\nlines".encode("utf-16"), "UTF-16"),
        (b"a\0b\nc", "control characters"),
        (b"PK\x03\x04 zip", "packed file"),
        (b"%PDF-1.7\n", "PDF"),
        (b"a" * (run_texts.MOST_BYTES + 1), "20 MB"),
    ],
)
def test_what_is_no_text_is_refused_in_plain_words(make_runs, content, words):
    with pytest.raises(InputError, match=words):
        make_runs().inbox.save("x.txt", content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("my.csv", "id,text\n1,A cat sees a dog.\n2,A dog hears a bird.\n"),
        ("my.tsv", "id\ttext\n1\tA cat sees a dog.\n2\tA dog hears a bird.\n"),
        ("my.jsonl", '{"text": "A cat sees a dog."}\n{"text": "A dog hears a bird."}\n'),
    ],
)
def test_a_table_is_kept_with_its_column_and_its_first_rows(make_runs, name, content):
    runs = make_runs()
    text = runs.inbox.save(name, content.encode())
    assert (text.name, text.column) == (name, "text")
    assert text.sample == ("A cat sees a dog.", "A dog hears a bird.")
    run = runs.create(CONFIG, texts=[text.id])
    assert (runs.root / run / "texts" / name).read_text() == content


def test_a_table_without_the_named_column_is_refused_by_its_own_name(make_runs):
    inbox = make_runs().inbox
    with pytest.raises(InputError, match=r"my\.csv") as refused:
        inbox.save("my.csv", b"id,label\n1,a\n2,b\n", "body")
    assert "body" in str(refused.value)
    assert str(inbox.folder) not in str(refused.value)
    with pytest.raises(InputError, match="Parquet"):
        inbox.save("my.parquet", b"not one")


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("../../etc/passwd", "passwd.txt"),
        ("C:\\books\\one.txt", "one.txt"),
        ("", "text.txt"),
        (None, "text.txt"),
        ("文本.txt", "文本.txt"),
        ("...", "text.txt"),
        ("../a.CSV", "a.csv"),
    ],
)
def test_file_names_of_visitors_become_harmless(given, clean):
    assert run_texts.clean_name(given) == clean
