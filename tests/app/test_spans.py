"""The Spans lab without a browser: numbers against core_models, what is hidden, bad input."""

import asyncio
import math
from functools import partial
from types import SimpleNamespace

import gradio as gr
import pytest
import torch

import core_models as cm
from app.labs.spans import answers as spans
from app.labs.spans import lab as tab
from app.labs.spans.asked import say_moved
from app.labs.spans.lengths import _drawn_lengths
from app.labs.spans.lengths import law as lengths_law
from app.serving.session import Session
from core_models import InputError
from core_models.masking import spans as span_masking
from core_models.prediction import fill_spans, shift
from core_models.prediction.spans import Shift, loss_of
from tests.core.tiny_models import narrow
from viz.words import percent

TEXT = "The capital of France is the city of Paris ."
NAME = "spanbert-tiny"
SHOWN = ("reader", "which", "first", "count", "picture", "notes", "said", "heads")
SHOWN += ("expected", "moved", "roll", "law", "code")


def tiny(tokenizer: cm.Tokenizer) -> cm.Model:
    """A random SpanBERT over a vocabulary."""
    config = cm.size("spanbert-base").with_vocabulary(tokenizer.vocabulary)
    config = narrow(config, width=16, inner=24, initial_std=0.4)
    return cm.Model.new(config, tokenizer, generator=torch.Generator().manual_seed(5))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("span-models")
    lines = [TEXT, "Bees make honey and carry it home to the hive ."] * 4
    tiny(cm.Tokenizer.train(lines, vocabulary=150)).save(folder / NAME)
    return folder


@pytest.fixture
def session(folder, monkeypatch):
    monkeypatch.setenv("CLOZE_MODELS", str(folder))
    session = Session()
    yield session
    session.close()


@pytest.fixture
def without(monkeypatch):
    """The page's service where no model has both heads."""
    monkeypatch.delenv("CLOZE_MODELS", raising=False)
    session = Session()
    infos = [info for info in session.models() if "span_boundary" not in info.heads]
    monkeypatch.setattr(session, "models", lambda: infos)
    yield session
    session.close()


def sentence(**values):
    return {"text": TEXT, "model": NAME, "marks": [], **values}


def asked(session, *, inside="mask", run=0, roll=1, reader="", **values):
    """The question of the page, read."""
    question = {"sentence": sentence(**values), "run": run, "inside": inside, "roll": roll}
    return question | {"reader": reader}


def ask(session, **values):
    found = asyncio.run(tab.show(session, asked(session, **values)))
    return dict(zip(SHOWN, found, strict=True))


def span_of(session, **values):
    read = tab.read(session, asked(session, **values))
    return read.hidden[read.run]


def hide(session, *words, model=NAME):
    """Marks on words of the text."""
    tokens = session.sentence(TEXT, model).tokens
    return [{"position": t.position, "case": "mask"} for t in tokens if t.text in words]


@pytest.mark.parametrize("inside", spans.INSIDE)
def test_every_number_is_that_of_the_core_calls(session, inside):
    marks = hide(session, "France", "is")
    answer = ask(session, marks=marks, inside=inside, roll=3)
    span = span_of(session, marks=marks)
    model = session.model(NAME)
    extra = {}
    if inside == "kept":
        extra = {"kept": True}
    elif inside == "random":
        ids = spans.strangers(model.tokenizer, span[1] - span[0], 3)
        extra = {"replaced": dict(zip(range(*span), ids, strict=True))}
    (told,) = fill_spans(model, TEXT, [span], **extra)
    (base,) = fill_spans(model, TEXT, [span])
    shown = answer["heads"].layout.meta["rows"]
    assert len(shown) == span[1] - span[0]
    for n, (piece, masked, row) in enumerate(zip(told.pieces, base.pieces, shown, strict=True)):
        wanted = [n, session.sentence(TEXT, NAME).tokens[span[0] + n].text, row[2]]
        for head in ("masked_token", "span_boundary"):
            said = getattr(piece, head)
            wanted += [said.original.probability, said.original.rank, loss_of(said)]
            if inside != "mask":
                wanted.append(pytest.approx(getattr(masked, head).original.probability))
        assert row == [*wanted, pytest.approx(piece.loss)]
    bars = {trace.name: trace.y for trace in answer["heads"].data}
    assert len(bars) == (2 if inside == "mask" else 4)
    assert bars[str(tab.HEADS[1]) if inside == "mask" else "Span-boundary head, now"] == tuple(
        100 * piece.span_boundary.original.probability for piece in told.pieces
    )
    means = [
        sum(loss_of(getattr(piece, head)) for piece in told.pieces) / len(told.pieces)
        for head in ("masked_token", "span_boundary")
    ]
    assert f"{means[0]:.2f} + {means[1]:.2f} = {sum(means):.2f}" in answer["said"]
    if inside == "mask":
        assert not answer["moved"]
    else:
        moved = shift(model, TEXT, span, **extra)
        for share in (moved.before, moved.after, moved.inside):
            assert percent(share) in answer["moved"]


def test_the_best_words_of_both_heads_are_listed(session):
    marks = hide(session, "France", "is")
    span = span_of(session, marks=marks)
    (told,) = fill_spans(session.model(NAME), TEXT, [span])
    rows = ask(session, marks=marks)["expected"]["rows"]
    assert len(rows) == spans.TOP * len(told.pieces)
    for row in rows:
        piece, rank = told.pieces[row[0]], row[2] - 1
        own, boundary = piece.masked_token.candidates[rank], piece.span_boundary.candidates[rank]
        assert (row[3], row[4][0]) == (own.display, own.probability)
        assert (row[5], row[6][0]) == (boundary.display, boundary.probability)


def test_each_run_is_a_span_and_the_other_runs_stay_hidden(session):
    marks = hide(session, "capital", "France", "is", "Paris")
    read = tab.read(session, asked(session, marks=marks, run=1))
    assert (len(read.hidden), read.run) == (3, 1)
    others = [p for s in (read.hidden[0], read.hidden[2]) for p in range(*s)]
    (told,) = fill_spans(session.model(NAME), TEXT, [read.hidden[1]], masks=others)
    answer = ask(session, marks=marks, run=1)
    chance = told.pieces[0].span_boundary.original.probability
    assert answer["heads"].layout.meta["rows"][0][6] == chance
    assert [name for name, _ in answer["which"].choices] == ["capital", "France is", "Paris"]
    # A link may name any.
    for run, shown in ((9, 2), (-1, 0)):
        assert ask(session, marks=marks, run=run)["which"].value == shown


def test_without_marks_words_from_the_middle_are_taken(session):
    answer = ask(session)
    assert "Nothing is hidden" in answer["notes"]
    columns = answer["picture"]["columns"]
    assert "".join(c["text"] for c in columns if "place" in c) == "Franceisthe"
    assert (answer["first"].value, answer["count"]) == (3, 3)
    assert len(answer["law"].data) == 2


def test_a_span_at_the_edge_has_no_boundary_answer(session):
    answer = ask(session, marks=hide(session, "The", "capital"))
    assert "at the edge" in answer["notes"]
    assert not any(column["boundary"] for column in answer["picture"]["columns"])
    assert all(row[6] is None for row in answer["heads"].layout.meta["rows"])
    assert "boundary head" not in answer["said"]
    assert "at the edge" in ask(session, text="Paris")["notes"]


def test_hidden_words_of_another_vocabulary_are_found_by_their_letters(session):
    marks = hide(session, "France", model="bert-mini")
    answer = ask(session, model="bert-mini", marks=marks)
    assert answer["picture"]["by"] == {NAME: "en"}
    assert "bert-mini does not have both heads" in answer["notes"]
    hidden = [column["text"] for column in answer["picture"]["columns"] if "place" in column]
    assert "".join(hidden) == "France"


def test_a_cut_word_is_told(session):
    tokenizer = session.model(NAME).tokenizer
    words = [a + b for a in ("home", "hive", "city") for b in ("it", "of", "is")]
    pieces = {word: tokenizer.pieces_of(word) for word in words}
    long = next(w for w, p in pieces.items() if len(p) > 1 and tokenizer.unknown_id not in p)
    whole, cut = (
        ask(session, text=f"The {long} carry", marks=[{"position": n} for n in places])
        for places in (range(2, 2 + len(pieces[long])), [2])
    )
    assert "cuts a word" not in whole["notes"]
    assert "cuts a word" in cut["notes"]
    assert (whole["count"], cut["count"]) == (1, 1)


def test_the_law_is_that_of_the_masking(session):
    law = ask(session, marks=hide(session, "France", "is"))["law"]
    shares = list(span_masking.geometric())
    raw = [0.2 * 0.8**n for n in range(10)]
    assert shares == pytest.approx([share / sum(raw) for share in raw])
    *rows, means = law.layout.meta["rows"]
    assert [row[1] for row in rows] == shares
    assert means[1] == pytest.approx(3.797, abs=1e-3)
    assert [row[3] for row in rows] == [0, 1] + [0] * 8
    *bars, marks = law.data
    assert list(bars[0].y) == pytest.approx([100 * share for share in shares])
    assert list(marks.x) == ["2"]
    # 15 % of ten words are two, so no draw is longer.
    assert sum(row[2] for row in rows[:2]) == pytest.approx(1)
    long = ask(session, text=" ".join(["bees make honey"] * 60))["law"].layout.meta["rows"]
    assert 3 < long[-1][2] < 5.5  # merged neighbours are longer, cut ones shorter


def test_no_gap_of_the_text_is_drawn(session):
    """They are hidden already: of the others 15 % are drawn, here one word."""
    law = ask(session, text=" ".join(["[MASK]"] * 20 + ["bees"]))["law"]
    assert law.layout.meta["rows"][-1][2] == 1
    law = ask(session, text="[MASK]")["law"]
    assert law.layout.meta["rows"][-1][2] is None
    assert ", \N{EN DASH} in 200 draws" in law.layout.title.text


def test_the_mean_of_the_draws_counts_the_longest_in_full(session, monkeypatch):
    read = tab.read(session, asked(session, text=" ".join(["bees make honey"] * 60)))
    # Two runs, of fourteen words and of two.
    drawn = SimpleNamespace(spans=torch.tensor([[0, 1, 15], [0, 21, 23]]))
    monkeypatch.setattr(span_masking, "spans", lambda *given, **options: drawn)
    _drawn_lengths.cache_clear()
    law = lengths_law(read.sentence, [])
    _drawn_lengths.cache_clear()
    assert law.layout.meta["rows"][-1][2] == 8


def test_states_may_move_by_more_than_their_length():
    moved = Shift(before=0.25, after=0.9997, inside=1.374)
    told = spans.Told(pieces=[], seen=[], masked=None, moved=moved, unread=[])
    said = say_moved(told, edge=False)
    assert said.endswith("by 25\u00a0% and 100\u00a0% of their length, those inside by 137\u00a0%.")
    assert say_moved(told, edge=True).endswith("moved by 137\u00a0% of their length.")


def test_a_word_without_a_piece_is_not_answered(session):
    """What stands there is [UNK]: its probability is not that of the word."""
    text = "The capital 龘 of France 😀 is Paris ."
    unread = ask(session, text=text, marks=[{"position": 3}])
    (row,) = unread["heads"].layout.meta["rows"]
    assert row == [0, "龘", "[MASK]", *[None] * 7]
    assert unread["said"] == (
        "The model has no piece for the real words here, so that it cannot answer them."
    )
    both = ask(session, text=text, marks=[{"position": 3}, {"position": 4}])
    first, second = both["heads"].layout.meta["rows"]
    assert first[3:] == [None] * 7
    assert second[3] > 0
    assert f"gives the real words {percent(second[3])}" in both["said"]


def test_what_another_reader_does_not_read_is_told(session, monkeypatch):
    text = "The capital 龘 of France is Paris ."
    said = f"{NAME} has no piece for “龘” and reads [UNK] instead."
    assert said not in ask(session, text=text)["notes"]  # the sentence block says so itself
    monkeypatch.setattr(tab, "read", partial(read_by_another, tab.read))
    assert said in ask(session, text=text)["notes"]


def read_by_another(read, *values):
    return read(*values)._replace(bar="bert-mini")


def test_a_text_that_is_cut_off_is_counted_without_special_pieces(session):
    pieces = session.model(NAME).longest - 2
    notes = ask(session, text="bees make honey " * 300)["notes"]
    assert f"this tab uses its first {pieces} pieces." in notes


def test_a_span_of_which_only_a_part_is_shown_says_so(session):
    text = "bees make honey " * 20
    tokens = session.sentence(text, NAME).tokens
    marks = [{"position": t.position, "case": "mask"} for t in tokens if 2 < t.position < 40]
    found = ask(session, text=text, marks=marks)
    assert "This span has 37 pieces: only its first 32 are shown." in found["notes"]
    assert len(found["heads"].layout.meta["rows"]) == spans.MOST_PIECES
    assert "only its first" not in ask(session)["notes"]


def drawn(session, text=TEXT, hides=None):
    (found,) = tab.draw(session, {**asked(session, text=text), "hides": hides})
    return found


def test_a_draw_hides_fifteen_percent_in_runs_of_words(session):
    text = " ".join(["bees make honey and carry it home"] * 6)
    found = drawn(session, text, {"seed": 3})
    assert found == drawn(session, text, {"seed": 3, "hide": None}) != drawn(session, text)
    assert (found["text"], found["seed"]) == (text, 4)
    cut = spans.cut(session.model(NAME), text)
    hidden = spans.hidden_runs(cut, [tuple(span) for span in found["hide"]])
    pieces = sum(stop - start for start, stop in hidden)
    assert pieces == math.ceil(0.15 * sum(map(len, cut.words)))
    with pytest.raises(InputError, match="seed"):
        drawn(session, text, {"seed": -1})


def test_words_are_hidden_by_their_number(session):
    def picked(first, count):
        question = {**asked(session), "first": first, "count": count}
        return tab.pick(session, question)[0]["hide"]

    assert picked(1, 3) == [[4, 21]]  # capital of France
    assert picked(9, 5) == [[len(TEXT) - 1, len(TEXT)]]
    for first, count in ((-1, 1), (10, 1), (0, 0), (0, 11), ("x", 1), (0, None)):
        with pytest.raises(InputError):
            picked(first, count)


def test_strangers_are_words_and_follow_the_seed(session):
    tokenizer = session.model(NAME).tokenizer
    found = spans.strangers(tokenizer, 4, 1)
    assert found == spans.strangers(tokenizer, 4, 1) != spans.strangers(tokenizer, 4, 2)
    assert all(tokenizer.display(index).isalpha() for index in found)


def test_without_the_heads_the_geometry_is_there(without):
    answer = ask(without, model="bert-mini")
    assert "zoo build spanbert-mini" in answer["said"]
    assert answer["heads"] is answer["expected"] is None
    assert answer["code"] == ""
    places = [c for c in answer["picture"]["columns"] if "place" in c]
    assert len(places) == 3
    assert {(c["seen"], c["first"]) for c in places} == {("[MASK]", None)}


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"text": ""}, "no text"),
        ({"inside": "all"}, "mask, random or kept"),
        ({"inside": ["mask"]}, "mask, random or kept"),
        ({"run": "x"}, "run"),
        ({"roll": True}, "seed"),
        ({"roll": None}, "seed"),
        ({"marks": 3}, "marks"),
        ({"model": "../etc"}, "no model"),
    ],
)
def test_bad_questions_get_a_sentence(session, values, word):
    with pytest.raises(InputError, match=word):
        ask(session, **values)


def test_nothing_is_answered_before_the_lab_is_seen(session):
    question = {**asked(session), "sentence": None}
    assert asyncio.run(tab.show(session, question)) == [gr.skip()] * len(SHOWN)


@pytest.mark.parametrize("text", ["a", "word " * 2000, "[MASK] " * 20, "[MASK] is [MASK] now"])
def test_short_long_and_hidden_texts_work(session, text):
    assert ask(session, text=text)["heads"].layout.meta["rows"]
    last = min(511, len(session.sentence(text, NAME).tokens) - 1)
    marks = [{"position": n} for n in range(1, last)]
    rows = ask(session, text=text, marks=marks, inside="random")["heads"].layout.meta["rows"]
    assert len(rows) <= spans.MOST_PIECES


def test_a_reader_can_be_chosen_and_strange_ones_are_ignored(session):
    for reader in (NAME, "../etc", 4, None, ["x"]):
        assert ask(session, reader=reader)["picture"]["by"] == {NAME: "en"}


def test_the_code_shown_recomputes_the_losses(session):
    marks = hide(session, "capital", "is", "the")
    for inside in spans.INSIDE:
        answer = ask(session, marks=marks, inside=inside, run=1)
        printed: list = []
        exec(answer["code"], {"print": lambda *values, to=printed: to.append(values)})
        step = 3 if inside == "mask" else 4
        rows = answer["heads"].layout.meta["rows"]
        wanted = [(row[0], row[5], row[5 + step]) for row in rows]
        for found, expected in zip(printed, wanted, strict=True):
            assert found == pytest.approx(expected)
