"""The Unmasking lab without a browser: every step against the core, words that stay, refusals."""

import asyncio
from xml.etree import ElementTree

import gradio as gr
import pytest

import core_models as cm
from app.labs.unmasking import answers as unmasking
from app.labs.unmasking import lab as tab
from core_models import InputError
from tests.core.tiny_models import WORDS, new, tiny

TEXT = "The capital of France is Paris."
SIGN = unmasking.sign(TEXT)
SETTING = {
    "order": "surest", "steps": 6, "seed": 1, "drawn": False, "again": 0.0, "stays": [], "at": -1,
}  # fmt: skip


def ask(session, *, text=TEXT, **values):
    """The picture, the line, the table and the code."""
    question = {**SETTING, "sentence": {"text": text, "model": "bert-mini"}, **values}
    return asyncio.run(tab.show(session, question))


def test_rows_are_the_steps_of_the_core(session):
    model = session.model("bert-mini")
    picture, line, table, code = ask(session)
    found = cm.unmask(model, TEXT, masks=[1, 3, 4, 5, 6, 7], steps=6)
    assert [c["text"] for c in picture["columns"] if c["stays"]] == ["capital"], "the longest word"
    assert len(picture["rows"]) == 7
    for step, row in zip(found.steps, picture["rows"][1:], strict=True):
        shown = ["" if i == model.tokenizer.mask_id else model.tokenizer.display(i)
                 for i in step.ids[1:-1]]  # fmt: skip
        assert [cell["text"] for cell in row] == shown
        new = {place + 1: cell["chance"] for place, cell in enumerate(row) if cell["kind"] == "new"}
        assert new == {each.position: each.probability for each in step.revealed}
    assert [cell["kind"] for cell in picture["rows"][0]] == ["hidden", "given", *["hidden"] * 5]
    assert found.text in str(line)
    assert [row[0] for row in table["rows"]] == [1, 2, 3, 4, 5, 6]
    exec(code.replace("cm.load('bert-mini')", "loaded"), {"loaded": model})
    assert "steps=6, order='surest', seed=1" in code


def test_words_stay_where_they_were_chosen_and_are_forgotten_with_their_text(session):
    def kept(picture):
        return [c["text"] for c in picture["columns"] if c["stays"]]

    assert kept(ask(session, stays=[SIGN, 3, 5, 99, "x"])[0]) == ["France", "Paris"]
    assert kept(ask(session, stays=[SIGN])[0]) == []
    assert kept(ask(session, text="Madrid lies in Spain.", stays=[SIGN, 1])[0]) == ["Madrid"]
    with pytest.raises(InputError, match="Every word stays"):
        ask(session, stays=[SIGN, *range(7)])


def test_a_gap_of_the_text_never_stays(session):
    text = "The [MASK] is red."
    picture, _, _, code = ask(session, text=text)
    assert [c["text"] for c in picture["columns"] if c["stays"]] == ["The"], "the longest word"
    assert "hidden = [2, 3, 4, 5]" in code
    stays = [unmasking.sign(text), 0, 1, 2, 3, 4]
    picture, _, _, code = ask(session, text=text, stays=stays)
    assert [c["text"] for c in picture["columns"] if not c["stays"]] == ["[MASK]"]
    assert len(picture["rows"]) == 2
    assert "hidden = [2]" in code
    assert len(ask(session, text="[MASK]")[0]["rows"]) == 2


@pytest.mark.parametrize("text", ["Paris", "?"])
def test_a_single_word_is_hidden(session, text):
    picture, line, *_ = ask(session, text=text)
    assert "”: one piece, put in with " in line
    assert not any(column["stays"] for column in picture["columns"])
    assert picture["rows"][0][0]["kind"] == "hidden"


def test_pieces_go_back_and_are_drawn(session):
    picture, _, table, code = ask(session, again=0.5, drawn=True, steps=4, order="left_to_right")
    assert any(row[3] for row in table["rows"])
    assert "temperature=1.0, remask=0.5" in code
    assert ask(session, again=0.5, drawn=True, steps=4, order="left_to_right")[0] == picture
    assert len(ask(session, steps=24)[0]["rows"]) == 7, "no step without a piece"


def test_a_tiny_probability_is_told_in_the_language_of_the_page():
    hidden, new = [{"text": "", "kind": "hidden"}] * 2, [{"text": "a", "kind": "new"}] * 2
    rows = [hidden, [{**new[0], "chance": 1e-6}, {**new[1], "chance": 0.5}]]
    found = tab.every(rows)
    told = {tuple(path): parts for path, parts in found["words"]}["rows", 0, 2]
    assert "under {0}" in str(told)
    assert found["rows"][0][2].replace("\N{NO-BREAK SPACE}", " ") == "a under 0.01 %, a 50 %"


def test_a_long_text_is_cut_between_words(session):
    picture, line, *_ = ask(session, text=" ".join(["The museum is unbelievable."] * 20))
    assert len(picture["columns"]) <= unmasking.MOST_PIECES
    assert "uses its first" in str(line)


def test_what_a_model_has_no_room_for_is_cut_and_told():
    text = " ".join(WORDS.split() * 3)
    sentence = unmasking.cut(new(tiny("bert-base-uncased")), text)
    assert len(sentence.tokens) == 20 < len(text.split())
    assert sentence.cut


def test_the_pieces_that_are_used_are_counted_whatever_the_special_ones(session):
    picture, line, *_ = ask(session, text="The cat [SEP] sat here. " * 12)
    used = len(picture["columns"])
    assert f"uses its first {used} pieces" in str(line)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"order": "best"}, "order is 'best'"),
        ({"steps": 0}, "steps"),
        ({"seed": -1}, "seed"),
        ({"again": "x"}, "goes back is 'x'"),
    ],
)
def test_what_does_not_fit_is_refused(session, values, message):
    with pytest.raises(InputError, match=message):
        ask(session, **values)


def test_the_drawing_has_every_piece_of_every_step(session):
    picture = ask(session)[0]
    question = {**SETTING, "sentence": {"text": TEXT, "model": "bert-mini"}}
    (svg,) = asyncio.run(tab.draw(session, question))
    texts = [each.text for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("text")]
    assert texts[0] == "bert-mini: the text, step by step"
    wanted = [cell["text"] or "·" for row in picture["rows"] for cell in row]
    numbers = {str(n) for n in range(7)}
    assert [text for text in texts[2:] if text not in numbers and "%" not in text] == wanted
    assert asyncio.run(tab.draw(session, {**question, "sentence": None})) == [gr.skip()]
