"""Reading labelled sets: the shipped ones, everybody's own, and what cannot be used."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from core_models.errors import InputError
from core_models.tasks import sets, tables
from core_models.tasks.columns import guess
from core_models.tasks.rows import Answer, Row
from core_models.tasks.words import is_chinese, join, words

KINDS = {
    "sentiment": ("classify", 680, 120),
    "sentiment-hard": ("classify", 595, 105),
    "sentiment-zh": ("classify", 340, 60),
    "topic": ("classify", 612, 108),
    "nli": ("pair", 510, 90),
    "similarity": ("regress", 340, 60),
    "ner": ("tag", 425, 75),
    "ner-zh": ("tag", 221, 39),
    "qa": ("answer", 470, 80),
}


def write(folder: Path, name: str, content: str | list[dict[str, Any]]) -> Path:
    path = folder / name
    if not isinstance(content, str):
        content = "\n".join(json.dumps(row, ensure_ascii=False) for row in content)
    path.write_text(content, encoding="utf-8")
    return path


def test_every_shipped_set_is_read() -> None:
    assert set(sets.shipped()) == set(KINDS)
    for name, (kind, train, dev) in KINDS.items():
        task = sets.load(name)
        assert (task.kind, len(task.train), len(task.dev)) == (kind, train, dev)
        assert task.chinese == name.endswith("-zh")


def test_statistics_are_those_of_the_primers_table() -> None:
    assert sets.load("topic").statistics().labels == dict.fromkeys(
        ["animals", "arts", "food", "science", "sport", "travel"], 102
    )
    ner = sets.load("ner")
    assert ner.statistics().labels == {"DATE": 176, "LOC": 229, "ORG": 160, "PER": 189}
    assert ner.statistics(ner.dev).labels == {"DATE": 36, "LOC": 41, "ORG": 37, "PER": 29}
    assert sets.load("qa").statistics().unanswered == 120
    assert sets.load("similarity").statistics().scores == (0.0, 5.0)


def test_tags_start_with_outside() -> None:
    task = sets.load("ner-zh")
    assert task.labels == ("O", "B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER")
    assert task.entities


def test_csv_with_quotes_and_other_column_names(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "mine.csv",
        '\ufeffid,Body,Verdict\n1,"Good, very good.",yes\n2,"Bad\nindeed",no\n'
        "3,Fine,yes\n4,Poor,no\n",
    )
    found = guess(tables.read(path))
    assert (found.kind, found.columns) == ("classify", {"text": "Body", "label": "Verdict"})
    task = sets.load(path, columns={"text": "Body", "label": "Verdict"})
    rows = sorted([*task.train, *task.dev], key=lambda row: row.number)
    assert [row.text for row in rows] == ["Good, very good.", "Bad\nindeed", "Fine", "Poor"]
    assert task.labels == ("no", "yes")
    assert tables.read(path).preview(1) == [
        {"id": "1", "Body": "Good, very good.", "Verdict": "yes"}
    ]


def test_kinds_are_guessed_from_columns_and_values(tmp_path: Path) -> None:
    cases: dict[str, dict[str, Any]] = {
        "pair": {"premise": "It rains.", "hypothesis": "It is dry.", "label": 1},
        "regress": {"sentence1": "a", "sentence2": "b", "score": 3.5},
        "tag": {"tokens": ["Ann", "ran"], "ner_tags": ["B-PER", "O"]},
        "answer": {"question": "Who?", "context": "Ann ran.", "answers": []},
        "classify": {"query": "play some music", "labels": "music"},
    }
    for kind, record in cases.items():
        table = tables.read(write(tmp_path, f"{kind}.jsonl", [record, record]))
        assert guess(table).kind == kind


def test_numbers_with_fractions_are_scores_and_others_are_labels(tmp_path: Path) -> None:
    lines = ["text\tvalue", *(f"a text of words {i}\t{i / 2}" for i in range(8))]
    path = write(tmp_path, "scores.tsv", "\n".join(lines))
    assert guess(tables.read(path)).kind == "regress"
    path = write(tmp_path, "classes.tsv", "text\tlabel\nsome words\t0\nmore words\t1\n")
    assert guess(tables.read(path)).kind == "classify"


def test_tags_and_answers_from_csv(tmp_path: Path) -> None:
    path = write(tmp_path, "tags.csv", "tokens,tags\nAnn ran,B-PER O\nShe ran,O O\n")
    assert sets.load(path, path).train[0] == Row(
        number=1, tokens=("Ann", "ran"), tags=("B-PER", "O")
    )
    path = write(tmp_path, "qa.csv", "context,question,answer\nAnn ran.,Who ran?,Ann\nNo,Who?,\n")
    first, second = sets.load(path, path).train
    assert first.answers == (Answer("Ann", 0),)
    assert second.answers == ()


def test_packed_files_and_the_columns_of_datasets(tmp_path: Path) -> None:
    row = {
        "context": "It rained in Oslo.",
        "question": "Where?",
        "answers": {"text": ["Oslo"], "answer_start": [13]},
    }
    path = tmp_path / "qa.jsonl.xz"
    path.write_bytes(lzma.compress(json.dumps(row).encode()))
    rows = sets.rows_of(tables.read(path), guess(tables.read(path)))
    assert rows[0].answers == (Answer("Oslo", 13),)


def test_hold_out_keeps_equal_texts_together_and_labels_in_balance() -> None:
    rows = [Row(text=f"text {i // 2}", label="ab"[i // 2 % 2], number=i) for i in range(200)]
    train, dev = sets.hold_out(rows)
    assert not {row.text for row in train} & {row.text for row in dev}
    assert len(dev) == 30
    assert sum(row.label == "a" for row in dev) in (14, 16)
    assert sets.hold_out(rows) == (train, dev)


def test_warnings_are_values_not_errors() -> None:
    rows = [Row(text=f"text {i}", label="rare" if i < 5 else "common") for i in range(60)]
    task = sets.from_rows("x", "classify", rows, rows[:5])
    text = " ".join(task.warnings)
    assert "unbalanced: 55 rows of 'common', 5 of 'rare'" in text
    assert "Development rows that are training rows, too: 5 of 5" in text
    unseen = sets.from_rows("x", "classify", rows, [Row(text="new", label="other")])
    assert "No training row has the label 'other'" in " ".join(unseen.warnings)
    stray = [Row(tokens=("a", "b"), tags=("O", "I-PER"))] * 2
    assert "Names that begin with an I- tag (2)" in " ".join(
        sets.from_rows("x", "tag", stray, stray).warnings
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "text,label\nx,1\ny,1\n", "every row has the label '1'"),
        ("a.csv", "text,label\nx,1,2\n", "row 1: columns here 3, in the header 2"),
        ("a.csv", "text,text\nx,1\n", "'text' is there twice"),
        ("a.csv", "text,label\n ,1\ny,0\n", "row 1: column 'text' holds no text"),
        ("a.csv", "text,label\nx,\ny,0\n", "row 1: column 'label' holds no label"),
        ("a.csv", "text,label\n", "holds no rows"),
        ("a.csv", "", "holds no rows"),
        ("a.csv", "text,score\nx,much\ny,1\n", "row 1: column 'score' holds no number: 'much'"),
        ("a.csv", "text,score\nx,nan\ny,1\n", "holds no finite number"),
        ("a.csv", "text,score\nx,2\ny,2\n", "every row has the score 2.0"),
        ("a.jsonl", '{"text": "x"\n', "line 1: not JSON"),
        ("a.jsonl", "[1]\n", "line 1: not an object"),
        (
            "a.jsonl",
            '{"text": "x", "label": "a"}\n{"text": "\\\\\\u0000", "label": "b"}\n',
            "line 2: it holds a zero character",
        ),
        ("a.jsonl", '{"text": "\\\\u0000", "label": "a"}\n', "has only one row; at least 2"),
        (
            "a.jsonl",
            [{"tokens": ["a"], "tags": ["O", "O"]}],
            "tokens 1, tags 2; give each token a tag",
        ),
        ("a.jsonl", [{"tokens": ["a b"], "tags": ["O"]}], "an entry with a blank inside"),
        (
            "a.jsonl",
            [
                {"context": "Ann ran.", "question": "Who?", "answers": []},
                {
                    "context": "Ann ran.",
                    "question": "Who?",
                    "answers": [{"text": "Ann", "start": 2}],
                },
            ],
            "row 2: at character 2 the context has 'n r', not 'Ann'",
        ),
        (
            "a.csv",
            "context,question,answer\nAnn ran.,Who?,Bob\n",
            "row 1: the answer 'Bob' does not stand in the context",
        ),
        ("a.txt", "x", "ends in '.txt'; allowed are .jsonl, .csv, .tsv"),
    ],
)
def test_what_cannot_be_used_is_told(
    tmp_path: Path, name: str, content: str | list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        sets.load(write(tmp_path, name, content))


def test_a_missing_column_lists_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "Body,Verdict\nx,1\ny,0\n")
    with pytest.raises(InputError, match="no column 'Txt'; it has 'Body', 'Verdict'"):
        sets.load(path, columns={"text": "Txt"})
    with pytest.raises(InputError, match="no column for text_b; it has 'Body', 'Verdict'"):
        sets.load(path, kind="pair")
    with pytest.raises(InputError, match="No role 'title'"):
        sets.load(path, columns={"title": "Body"})
    with pytest.raises(InputError, match="No kind 'poem'"):
        sets.load(path, kind="poem")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No labelled set 'nothing'"):
        sets.load("nothing")
    path = tmp_path / "binary.csv"
    path.write_bytes(b"text,label\n\0\1\2")
    with pytest.raises(InputError, match="binary file or UTF-16"):
        sets.load(path)
    path.write_bytes("text,label\nsch\u00f6n,1\n".encode("latin-1"))
    with pytest.raises(InputError, match="line 2: not UTF-8"):
        sets.load(path)
    path = tmp_path / "broken.jsonl.xz"
    path.write_bytes(lzma.compress(b"{}" * 100)[:30])
    with pytest.raises(InputError, match="no complete xz file"):
        sets.load(path)


def test_a_parquet_table_has_the_rows_of_its_lines(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"text": f"Text {n}", "label": n % 2, "odd": None} for n in range(30)]
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    write(tmp_path, "rows.jsonl", rows)
    table, lines = (tables.read(tmp_path / f"rows.{kind}") for kind in ("parquet", "jsonl"))
    assert (table.columns, table.records) == (lines.columns, lines.records)
    assert len(sets.load(tmp_path / "rows.parquet").train) > 20
    (tmp_path / "odd.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match=r"odd\.parquet is no parquet file"):
        tables.read(tmp_path / "odd.parquet")


def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LARGEST", 1000)
    path = tmp_path / "bomb.jsonl.xz"
    path.write_bytes(lzma.compress(b" " * 100_000))
    with pytest.raises(InputError, match="larger than"):
        sets.load(path)


def test_words_by_hand() -> None:
    text = "Dr Hall's co-op isn't far: 3.5 km, \u5317\u4eac."
    assert [word.text for word in words(text)] == [
        *("Dr", "Hall", "'s", "co-op", "isn't", "far", ":", "3.5", "km", ",", "\u5317", "\u4eac"),
        ".",
    ]
    assert all(text[word.start : word.end] == word.text for word in words(text))


def test_words_are_those_of_the_shipped_sets() -> None:
    for name in ("ner", "ner-zh"):
        for row in sets.load(name).train:
            text, places = join(row.tokens)
            assert [word.text for word in words(text)] == list(row.tokens)
            assert [(word.start, word.end) for word in words(text)] == places


def test_chinese_is_told_by_its_letters() -> None:
    assert is_chinese(["\u5317\u4eac\u5728\u54ea\u91cc\uff1f OK"])
    assert not is_chinese(["Beijing is \u5317\u4eac."])
    assert not is_chinese(["123"])


@pytest.mark.parametrize(
    "text",
    [
        "Jose\u0301 Garci\u0301a reist nach Mu\u0308nchen",
        "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902",
        "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u2600\ufe0f",
    ],
)
def test_a_word_keeps_the_marks_of_its_letters(text: str) -> None:
    """Accents and vowel signs may be characters of their own."""
    assert [word.text for word in words(text)] == text.split()
