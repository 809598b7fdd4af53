import csv
import io

import numpy as np
import pytest

import viz


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", " =1", "-", "  @"])
def test_formulas_are_guarded(text):
    assert viz.guard_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["capital", "", "1-2", "a=b", "'", "[MASK]", "##ing"])
def test_words_stay_as_they_are(text):
    assert viz.guard_cell(text) == text


def test_a_table_reads_back():
    weights = np.array([[0.25, 0.75], [1.0, 0.0]], dtype=np.float32)
    labels = ['quote " and, comma', "=sum(A1)"]
    text = viz.csv_text(weights, labels, labels)
    assert text.endswith("\r\n")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["from / to", 'quote " and, comma', "'=sum(A1)"]
    assert rows[1] == ['quote " and, comma', "0.25", "0.75"]
    assert rows[2] == ["'=sum(A1)", "1", "0"]


def test_numbers_keep_float32_and_have_no_exponent():
    weights = np.random.default_rng(0).random((5, 5)).astype(np.float32) ** 12
    text = viz.csv_text(weights, list("abcde"), list("abcde"))
    assert "e-" not in text.replace("e,", "")
    rows = list(csv.reader(io.StringIO(text)))[1:]
    again = np.array([[float(cell) for cell in row[1:]] for row in rows])
    np.testing.assert_allclose(again, weights, rtol=1e-6, atol=1e-10)


def test_labels_must_fit():
    with pytest.raises(ValueError, match="must be equal"):
        viz.csv_text(np.eye(2), ["a"], ["a", "b"])


def test_line_breaks_in_labels_stay_inside_their_cell():
    text = viz.csv_text(np.eye(1), ["a\r\nb"], ["x"])
    assert list(csv.reader(io.StringIO(text, newline="")))[1] == ["a\r\nb", "1"]
