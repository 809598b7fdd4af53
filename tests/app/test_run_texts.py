"""Texts that visitors send: what is refused in plain words, tables, names of files."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from app.runs.data import sources as run_sources
from app.runs.data import tables as run_tables
from app.runs.data import texts as run_texts
from app.runs.forms import form as run_form
from app.runs.forms import tasks as run_tasks
from core_models import InputError
from core_models.data import sources, tables

CONFIG = {
    "model": {"size": "bert-mini"},
    "data": {"texts": []},
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
        (b"a\r\nb\rc\x0bd", r"control characters \(U\+000B in line 3\).* Remove them"),
        ("a\nb\x85".encode(), r"U\+0085 in line 2"),
        (b"PK\x03\x04 zip", "packed file"),
        (b"%PDF-1.7\n", "PDF"),
        (b"a" * (run_texts.MOST_BYTES + 1), "20 MB"),
    ],
)
def test_what_is_no_text_is_refused_in_plain_words(make_runs, content, words):
    with pytest.raises(InputError, match=words):
        make_runs().inbox.save("x.txt", content)


@pytest.mark.parametrize("name", ["my.txt", "my.csv", "labels.csv"])
def test_a_class_that_sends_one_file_at_once(tmp_path, make_runs, monkeypatch, name):
    """Another one sends it between any two writes; both have it then."""
    content = b"id,text\n1,A cat sees a dog.\n2,A dog hears a bird.\n"
    originals = {"fsync": os.fsync, "replace": Path.replace}
    for moment in range(1, 20):
        inbox = run_texts.Inbox(tmp_path / str(moment))
        calls = 0

        def send(inbox=inbox):
            if name == "labels.csv":
                return inbox.save_labelled(name, content)["id"]
            return inbox.save(name, content).id

        def meanwhile(call, send=send, moment=moment):
            def made(*given):
                nonlocal calls
                calls += 1
                if calls == moment:
                    send()
                return call(*given)

            return made

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", meanwhile(originals["fsync"]))
            patch.setattr(Path, "replace", meanwhile(originals["replace"]))
            sent = send()
        assert inbox.facts(sent)["name"].startswith(name.partition(".")[0])
        assert inbox.copy([sent], tmp_path / f"run-{moment}")
        assert {path.suffix for path in inbox.folder.iterdir()} <= {".txt", ".csv", ".json"}
        if calls < moment:
            return
    pytest.fail("more moments than there are")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("my.csv", "id,text\n1,A cat sees a dog.\n2,A dog hears a bird.\n"),
        ("my.tsv", "id\ttext\n1\tA cat sees a dog.\n2\tA dog hears a bird.\n"),
        ("my.jsonl", '{"text": "A cat sees a dog."}\n{"text": "A dog hears a bird."}\n'),
    ],
)
def test_a_table_is_shown_as_parsed_and_its_column_becomes_plain_text(make_runs, name, content):
    runs = make_runs()
    text = runs.inbox.save(name, content.encode())
    assert (text.name, text.columns[text.column]) == (name, "text")
    assert [row[text.column] for row in text.rows] == ["A cat sees a dog.", "A dog hears a bird."]
    assert (text.lines, text.documents) == (2, 2)
    run = runs.create(CONFIG, texts=[text.id])
    assert runs.config(run)["data"]["texts"] == ["texts/my-text.txt"]
    plain = (runs.root / run / "texts/my-text.txt").read_text()
    assert plain == "A cat sees a dog.\n\nA dog hears a bird.\n\n"


def test_tables_with_other_columns_are_read_by_the_check_and_by_the_run_alike(make_runs, session):
    runs = make_runs()
    first = runs.inbox.save("ok.csv", b"id,text\n1,A cat sees a dog. It runs.\n2,A dog.\n")
    rows = b"n,title,review\n1,One,The soup was warm. We ate.\n2,Two,It was good.\n"
    other = runs.inbox.save("rev.csv", rows)
    assert other.columns[other.column] == "review"  # the longest texts, not the first column
    assert other.usable == (True, True, True)
    ids = [f"{first.id}.1", f"{other.id}.2", f"{other.id}.1"]
    config = CONFIG | {"data": {"texts": []}}
    found = run_form.check(runs, session, config, ids, None)
    assert [each["lines"] for each in found["reads"]] == [3, 3, 2]
    run = runs.create(config, texts=ids)
    names = ["texts/ok-text.txt", "texts/rev-review.txt", "texts/rev-title.txt"]
    assert runs.config(run)["data"]["texts"] == names
    documents = list(sources.read_documents([runs.root / run / name for name in names]))
    assert [" ".join(document) for document in documents] == [
        *("A cat sees a dog. It runs.", "A dog."),
        *("The soup was warm. We ate.", "It was good.", "One", "Two"),
    ]
    # A run made from this one names its texts with their size, and may leave one out.
    again = runs.as_form(run)
    again["data"]["texts"] = names[:2]
    found = run_form.check(runs, session, again, [], run)
    assert [(each["name"], each["lines"]) for each in found["own"]] == [(n, 3) for n in names[:2]]
    # What is sent beside the copied texts does not write over one of the same name.
    copy = runs.create(again, texts=[f"{first.id}.1"], source=run)
    assert runs.config(copy)["data"]["texts"][2] == "texts/ok-text-2.txt"


def test_a_preview_stands_for_the_whole_table(make_runs):
    """The first rows of a table that is sorted say nothing of the others."""
    rows = "".join(f"{n},A {'cat' if n < 40 else 'dog'} sees number {n}.\n" for n in range(100))
    text = make_runs().inbox.save("sorted.csv", f"n,text\n{rows}".encode())
    assert text.numbers == (1, 21, 41, 61, 81)
    assert [row[0] for row in text.rows] == ["0", "20", "40", "60", "80"]
    assert (text.of, text.more) == (100, False)


def test_rows_that_stand_for_a_table_are_some_of_each_label_in_its_order():
    labels = ["good"] * 60 + ["bad"] * 30 + ["mixed"]
    assert run_tables.representative(labels, 5) == [0, 30, 60, 75, 90]
    assert run_tables.representative(labels[:3], 5) == [0, 1, 2]
    assert run_tables.representative(labels, 2) == [0, 60]
    assert run_tables.representative([], 5) == []


@pytest.mark.parametrize("column", ["99", "0"])
def test_a_column_that_is_no_text_is_refused_by_the_check(make_runs, session, column):
    runs = make_runs()
    rows = b'{"n": 1, "text": "A cat sees."}\n{"n": 2, "text": "A dog hears."}\n'
    sent = runs.inbox.save("rows.jsonl", rows)
    assert sent.usable == (False, True)
    with pytest.raises(InputError, match=r"rows\.jsonl"):
        run_form.check(runs, session, CONFIG, [f"{sent.id}.{column}"], None)


def test_the_first_documents_of_a_text_are_shown(make_runs):
    text = make_runs().inbox.save("my.txt", b"One.\nTwo.\n\n\nThree.\n")
    assert text.sample == (("One.", "Two."), ("Three.",))
    assert (text.lines, text.documents) == (3, 2)


@pytest.mark.parametrize("blank", ["", " \t", "\u3000\u3000", "\u00a0", "\f", "\u2028"])
def test_documents_and_lines_are_those_that_the_run_reads(make_runs, blank):
    """Chinese texts, and those of word processors, have blanks of their own in blank lines."""
    runs = make_runs()
    content = f"\n{blank}\n".join(f"A cat {n}.\nIt ran\u2028off." for n in range(5)).encode()
    text = runs.inbox.save("my.txt", content)
    read = list(sources.read_documents([runs.inbox.find(text.id)]))
    assert (text.documents, text.lines) == (len(read), sum(map(len, read))) == (5, 10)
    assert len(text.sample) == len(runs.inbox.view(text.id).sample) == 4
    config = CONFIG | {"data": {"texts": []}}
    run = runs.create(config, texts=[text.id])
    (own,) = run_texts.own_texts(runs.root / run, ["texts/my.txt"] * 3)
    assert own["lines"] == 10


def test_a_table_without_the_named_column_is_refused_by_its_own_name(make_runs):
    inbox = make_runs().inbox
    with pytest.raises(InputError, match=r"my\.csv") as refused:
        inbox.save("my.csv", b"id,label\n1,a\n2,b\n", "body")
    assert "body" in str(refused.value)
    assert str(inbox.folder) not in str(refused.value)
    with pytest.raises(InputError, match="Parquet"):
        inbox.save("my.parquet", b"not one")
    with pytest.raises(InputError, match=r"^my\.csv, line 3"):
        inbox.save("my.csv", b"id,label\n1,a\n2,b,c\n")


# --- texts from elsewhere -------------------------------------------------------------------


LOCAL = {"CLOZE_TRAIN_SOURCES": "datasets"}


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        ({}, True),
        ({"CLOZE_HOST": "0.0.0.0"}, False),
        ({"SPACE_ID": "a/b"}, False),
        ({"CLOZE_TRAIN": "shared"}, False),
        ({"CLOZE_TRAIN": "shared"} | LOCAL, True),
        ({"CLOZE_TRAIN": "off"} | LOCAL, False),
        ({"CLOZE_TRAIN_SOURCES": "off"}, False),
    ],
)
def test_names_of_data_sets_are_for_the_local_user_unless_allowed(environment, names):
    assert run_sources.allowed(environment) == (names, ())


def test_folders_are_read_only_by_a_local_server_that_names_them(tmp_path):
    given = {"CLOZE_TRAIN_SOURCES": str(tmp_path)}
    assert run_sources.allowed(given) == (False, (tmp_path.resolve(),))
    assert run_sources.allowed(given | {"CLOZE_HOST": "0.0.0.0"}) == (False, ())
    for wrong in ("texts", "/no/such/folder", "yes"):
        with pytest.raises(InputError, match="CLOZE_TRAIN_SOURCES"):
            run_sources.allowed({"CLOZE_TRAIN_SOURCES": wrong})


def test_a_folder_is_read_and_nothing_outside_it(make_runs, tmp_path, monkeypatch):
    inbox = make_runs().inbox
    with pytest.raises(InputError, match="reads no folders"):
        run_tasks.look(inbox, {"folder": str(tmp_path)})
    root = tmp_path / "open"
    (root / "mine").mkdir(parents=True)
    (root / "mine/a.txt").write_text("One.\nTwo.\n\nThree.\n")
    (root / "mine/b.csv").write_text("id,body\n1,Four. Five.\n")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/c.txt").write_text("No.\nNot this.\n")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "files").mkdir()
    (root / "files/c.txt").symlink_to(tmp_path / "secret/c.txt")
    monkeypatch.setenv("CLOZE_TRAIN_SOURCES", str(root))
    found = run_tasks.look(inbox, {"folder": "mine"})
    assert (found["name"], found["lines"], found["documents"]) == ("mine.txt", 5, 3)
    assert inbox.find(found["id"]).read_text().startswith("One.\nTwo.\n\n")
    for wrong in ("..", "../secret", str(tmp_path / "secret"), "link", "files", "none", "", 3):
        with pytest.raises(InputError):
            run_tasks.look(inbox, {"folder": wrong})


@pytest.mark.parametrize("others", ["CLOZE_HOST", "CLOZE_TRAIN"])
def test_visitors_do_not_read_with_the_login_of_the_server(make_runs, monkeypatch, others):
    """Who may name a data set would else read the private ones of whoever runs the server."""
    inbox = make_runs().inbox
    tokens = []

    class Library:
        files: ClassVar = ["hf://datasets/owner/films@1/a.csv"]

        @classmethod
        def load_dataset_builder(cls, *_, token=None):
            tokens.append(token)
            rows = [{"text": f"Row {n} is long."} for n in range(5)]
            config = SimpleNamespace(data_files={"train": cls.files})
            return SimpleNamespace(config=config, as_streaming_dataset=lambda split: iter(rows))

    monkeypatch.setattr(tables, "library", lambda name: Library)
    monkeypatch.setenv("CLOZE_TRAIN_SOURCES", "datasets")
    run_tasks.look(inbox, {"dataset": "owner/films"})
    # The card of a data set says which files it has: of this machine, or of its network.
    for outside in ("/srv/class/marks.csv", "https://10.0.0.5/x.json"):
        monkeypatch.setattr(Library, "files", [outside])
        with pytest.raises(InputError, match="names files outside its repository"):
            run_tasks.look(inbox, {"dataset": "owner/films"})
        tokens.pop()
    monkeypatch.setattr(Library, "files", ["hf://datasets/owner/films@1/a.csv"])
    monkeypatch.setenv(others, {"CLOZE_HOST": "0.0.0.0", "CLOZE_TRAIN": "shared"}[others])
    run_tasks.look(inbox, {"dataset": "owner/films"})
    assert tokens == [None, False]


def test_a_data_set_is_read_by_its_name_as_a_table(make_runs, monkeypatch):
    inbox = make_runs().inbox
    rows = [{"label": n, "text": f"Row {n} is long.", "image": object()} for n in range(5)]
    asked = []
    monkeypatch.setattr(tables, "load", lambda *given, **more: asked.append(given) or iter(rows))
    found = run_tasks.look(inbox, {"dataset": "owner/films", "split": "test"})
    assert asked == [("owner/films", None, "test")]
    assert (found["name"], found["columns"]) == ("films-test.jsonl", ("label", "text"))
    assert (found["column"], found["lines"]) == (1, 5)
    for wrong in ("/etc", "../x", "a/b/c", "", None, "a b"):
        with pytest.raises(InputError, match="name of a data set"):
            run_tasks.look(inbox, {"dataset": wrong})

    def offline(*given, **more):
        raise ConnectionError("the hub cannot be reached")

    monkeypatch.setattr(tables, "load", offline)
    with pytest.raises(InputError, match="cannot be reached"):
        run_tasks.look(inbox, {"dataset": "owner/films"})
    monkeypatch.setenv("CLOZE_TRAIN", "shared")
    with pytest.raises(InputError, match="reads no data sets"):
        run_tasks.look(inbox, {"dataset": "owner/films"})


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
