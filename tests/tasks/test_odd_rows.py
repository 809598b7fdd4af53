"""Labelled files as people really have them: quotes, separators, blanks, other programs' lists."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import core_models as cm
from core_models.errors import InputError
from core_models.tasks import sets, tables
from core_models.tasks.baselines import baselines
from core_models.tasks.decode import predict
from core_models.tasks.encode import Coder
from core_models.tasks.rows import Answer, Row
from core_models.tasks.settings import Settings
from core_models.training.finetune import FineTuning
from tests.tasks.conftest import tiny

TSV = 'text\tlabel\n"foo bar\t1\nbaz" and\t0\nqux\t1\nzap\t0\n'
"""As GLUE writes them: a quote is a character."""


def read(content: str, ending: str = ".csv") -> tables.Table:
    return tables.parse(content.encode(), ending, f"mine{ending}")


def lines(*records: object) -> tables.Table:
    return read("\n".join(map(json.dumps, records)), ".jsonl")


def texts(table: tables.Table) -> list[str]:
    return [record["text"] for record in table.records]


def test_a_quote_that_stays_open_does_not_swallow_rows() -> None:
    with pytest.raises(InputError, match=r"line 3: a double quote is opened here and not closed"):
        read('label,text\n0,fine\n1,"abc\n0,def\n0,ghi\n')
    # The quote of one row must not be closed by that of another.
    with pytest.raises(InputError, match="line 2: a double quote"):
        read('text,label\n"abc,1\ndef,0\n"ghi",1\n')
    whole = read('text,label\n"abc\n""def""",1\nnone,0\n"said" she,1\n')
    assert texts(whole) == ['abc\n"def"', "none", "said she"]


def test_tabs_without_quoting() -> None:
    assert texts(read(TSV, ".tsv")) == ['"foo bar', 'baz" and', "qux", "zap"]
    quoted = 'text\tlabel\n"two\nlines"\t1\n"a\ttab"\t0\n"a ""word"""\t0\n'
    assert texts(read(quoted, ".tsv")) == ["two\nlines", "a\ttab", 'a "word"']


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_the_headers(separator: str) -> None:
    table = read("id,text,label\n1,a b,x\n2,c,y\n".replace(",", separator))
    assert table.columns == ("id", "text", "label")
    with pytest.raises(InputError, match="row 1: columns here 3, in the header 2; put texts"):
        read("text,label\na,b,c\n".replace(",", separator))


def test_what_spreadsheets_add_is_left_out() -> None:
    """Columns that once held something, and a line that names the separator."""
    table = read("sep=;\ntext;label;;\na, b, c;x;;\n,;y; ;\n")
    assert table.columns == ("text", "label")
    assert (texts(table), table.numbers) == (["a, b, c", ","], (1, 2))
    with pytest.raises(InputError, match="'' is there twice"):  # something stands in one of them
        read("text,label,,\na,x,,z\n")


def test_a_cell_that_holds_the_line_of_a_separator_is_whole() -> None:
    assert texts(read('text,label\n"use sep=,\nhere",x\n')) == ["use sep=,\nhere"]


def test_blank_rows_are_left_out_but_counted() -> None:
    table = read("\ntext,label\n\na,x\n,\n\nb,y\n")
    assert (texts(table), table.numbers) == (["a", "b"], (2, 5))


def test_a_cell_that_is_too_long_is_told() -> None:
    with pytest.raises(InputError, match="line 3: a cell has more than 131,072 characters"):
        read(f"text,label\na,x\n{'b' * 140_000},y\n")


def test_what_no_model_reads_is_told_with_its_row() -> None:
    """The form took it, and the run failed: of rows to measure on after its first epoch."""
    good = lines(*({"text": f"t {n}", "label": "ab"[n % 2]} for n in range(9)))
    long = lines({"text": "a", "label": "a"}, {"text": "b " * 10_001, "label": "b"})
    message = r"mine\.jsonl, row 2: column 'text' has a text of 20,002 characters; at most 20,000"
    for tables_of_both in ((long, None), (good, long)):
        with pytest.raises(InputError, match=message):
            sets.build(*tables_of_both)
    with pytest.raises(InputError, match=r"line 1: it holds half a character \(a lone surrogate"):
        lines({"text": "cut \ud83d", "label": "a"})
    assert texts(lines({"text": "\U0001f600", "label": "a"})) == ["\U0001f600"]


def test_a_table_without_names_loses_its_first_row_and_says_so() -> None:
    rows = "".join(f"t {n},{'good' if n % 2 else 'bad'}\n" for n in range(80))
    assert "is called 'bad', as one of its labels is" in sets.build(read(rows)).warnings[0]
    assert sets.build(read(f"text,label\n{rows}")).warnings == (
        "Few rows to measure on (12): one row is a large difference.",
    )


ANSWERED = {"context": "Ann ran.", "question": "Who?"}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "a", "label": float("nan")}, "column 'label' holds no label"),
        ({"text": float("nan"), "label": "x"}, "column 'text' holds no text"),
        ({"text": "a", "score": 10**400}, "column 'score' holds no number"),
        ({"tokens": ["a", None], "tags": ["O", "O"]}, "column 'tokens' has an empty entry"),
        ({"tokens": "['a' 'b']", "tags": "['O' 'O']"}, "has a list without commas"),
        (ANSWERED | {"answers": [{"text": "Ann", "start": float("inf")}]}, "no whole number"),
        (ANSWERED | {"answers": [{"text": "Ann", "start": 0.5}]}, "no whole number: 0.5"),
        (
            ANSWERED | {"answers": {"text": ["Ann"], "answer_start": []}},
            "as many starts as answers",
        ),
        (ANSWERED | {"answers": {"text": None, "answer_start": [0]}}, "as many starts as answers"),
    ],
)
def test_values_that_cannot_be_read(record: dict[str, object], message: str) -> None:
    kind = "tag" if "tokens" in record else None
    columns = {"score": "score"} if "score" in record else None
    with pytest.raises(InputError, match=f"row 1: .*{message}"):
        sets.build(lines(record, record), kind=kind, columns=columns)


def test_endless_numbers_are_not_json() -> None:
    with pytest.raises(InputError, match="line 1: not JSON"):
        read('{"label": ' + "9" * 5000 + "}", ".jsonl")


def test_a_question_without_the_field_is_not_a_question_without_an_answer() -> None:
    known = ANSWERED | {"answers": [{"text": "Ann"}]}
    with pytest.raises(InputError, match="row 2: there is no 'answers'; give an empty list"):
        sets.build(lines(known, ANSWERED))
    none = ANSWERED | {"answers": None, "context": "Bo ran."}
    assert sets.build(lines(known, none), lines(none)).statistics().unanswered == 1


@pytest.mark.parametrize(("start", "place"), [("9.0", 9), (9.0, 9), ("", 0), (None, 0)])
def test_starts_as_tables_of_numbers_write_them(start: object, place: int) -> None:
    """A column of whole numbers in which some are missing is one of fractions to pandas."""
    said = {"context": "Ann saw, Ann ran.", "question": "Who?", "answer": "Ann"}
    said |= {"answer_start": start}
    task = sets.build(lines(said, said), lines(said))
    assert task.train[0].answers == (Answer("Ann", place),)


def test_a_start_of_zero_is_a_place_like_any_other() -> None:
    said = {"context": "See Ann run.", "question": "Who?", "answer": "Ann", "answer_start": 0}
    with pytest.raises(InputError, match="row 1: at character 0 the context has 'See', not 'Ann'"):
        sets.build(lines(said, said), lines(said))


def test_lists_as_python_prints_them() -> None:
    table = read("tokens,tags\n\"['a', 'b']\",\"['O', 'B-X']\"\n\"['c']\",['O']\n")
    task = sets.build(table, table)
    assert task.train[0].tokens == ("a", "b")
    assert task.labels == ("O", "B-X")
    table = read(
        "context,question,answers\nAnn ran.,Who?,\"{'text': ['Ann'], 'answer_start': [0]}\"\n"
        "Bo ran.,Who?,\"{'text': [], 'answer_start': []}\"\n"
    )
    assert [row.answers for row in sets.build(table, table).train] == [(Answer("Ann", 0),), ()]


def test_fractions_may_be_labels_where_labels_are_wanted() -> None:
    table = read("text,stars\n" + "".join(f"w{i},{i % 3 / 2}\n" for i in range(12)))
    assert sets.build(table, columns={"score": "stars"}).kind == "regress"
    wanted = sets.build(table, kind="classify", columns={"label": "stars"})
    assert wanted.labels == ("0.0", "0.5", "1.0")


def test_labels_that_differ_in_capitals_are_told() -> None:
    rows = [Row(text=f"t {i}", label=("good", "Good", "bad")[i % 3]) for i in range(60)]
    warnings = " ".join(sets.from_rows("x", "classify", rows).warnings)
    assert "The labels 'Good' and others differ only in capitals" in warnings
    with pytest.raises(InputError, match="x has no row to measure on"):
        sets.from_rows("x", "classify", rows, [])


def test_shipped_sets_take_no_other_rows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="topic is a shipped set"):
        sets.load("topic", tmp_path / "mine.csv")
    with pytest.raises(InputError, match="topic is a shipped set"):
        sets.load("topic", kind="pair")


@pytest.mark.parametrize(
    ("tags", "bio"),
    [
        ("B-A E-A O S-B", "B-A I-A O B-B"),
        ("B-A L-A O U-B", "B-A I-A O B-B"),
        ("B-A M-A E-A S-B", "B-A I-A I-A B-B"),
        ("B-A I-A O B-B", "B-A I-A O B-B"),
        ("S NOUN O -", "S NOUN O -"),
    ],
)
def test_names_in_other_schemes_are_measured_as_names(tags: str, bio: str) -> None:
    rows = [Row(tokens=tuple("abcd"), tags=tuple(tags.split()))] * 2
    task = sets.from_rows("x", "tag", rows, rows)
    assert task.train[0].tags == task.dev[0].tags == tuple(bio.split())
    assert task.entities == (tags[:2] == "B-")
    assert any("ends of names" in warning for warning in task.warnings) == (tags != bio)


def test_names_that_begin_with_i_are_counted() -> None:
    tags = ("I-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-LOC")
    rows = [Row(tokens=tuple("abcdef"), tags=tags)] * 2
    task = sets.from_rows("x", "tag", rows, rows)
    assert task.statistics().labels == {"LOC": 4, "PER": 2}
    assert "Names that begin with an I- tag (4)" in " ".join(task.warnings)


def test_tags_without_a_type_are_no_names(bert: cm.Model) -> None:
    rows = [Row(tokens=("a", "b"), tags=("I-", "B-"))] * 2
    task = sets.from_rows("x", "tag", rows, rows)
    assert not task.entities
    tuning = FineTuning(bert, task, Settings(max_length=32))
    tuning.model.eval()
    found = predict(tuning.objective, Coder.of(tuning.model, task), task.dev)
    assert [each.entities for each in found] == [(), ()]


def test_texts_without_a_word_have_baselines() -> None:
    faces = "\U0001f600\U0001f621"
    rows = [Row(text=faces[i % 2] * (i + 1), label="ab"[i % 2]) for i in range(20)]
    found = {each.name: each.metrics for each in baselines(sets.from_rows("x", "classify", rows))}
    assert found["bag_of_words"]["accuracy"] == 1.0


def test_a_model_that_reads_left_is_not_asked_for_labels_of_texts(
    tokenizers: dict[str, cm.Tokenizer],
) -> None:
    bert = tiny("bert", tokenizers)
    config = replace(
        bert.config,
        objectives=("causal",),
        attention=replace(bert.config.attention, direction="left"),
    )
    causal = cm.Model.new(config, bert.tokenizer).eval()
    words = [Row(text=f"text {i}", label="ab"[i % 2]) for i in range(8)]
    with pytest.raises(InputError, match="reads from left to right"):
        FineTuning(causal, sets.from_rows("x", "classify", words), Settings(max_length=32))
    pairs = [Row(text=f"text {i}", pair="a", score=float(i)) for i in range(8)]
    task = sets.from_rows("x", "regress", pairs)
    with pytest.raises(InputError, match="reads from left to right"):
        FineTuning(causal, task, Settings(max_length=32))
    assert FineTuning(causal, task, Settings(max_length=32, apart=True)).steps > 0
