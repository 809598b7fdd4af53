"""The Pairs tab without a browser: numbers against core_models, examples, bad input."""

import asyncio
import json
import re
from dataclasses import replace

import gradio as gr
import pytest
import torch
import torch.nn.functional as F

import core_models as cm
from app.labs.pairs import answers as pairs
from app.labs.pairs import lab as tab
from app.labs.pairs import words
from app.serving.session import Session
from core_models import InputError
from core_models.data import documents
from core_models.prediction import judge_pair
from core_models.tokenizer.files import Specials, Template
from tests.core.tiny_models import narrow, tiny

FIRST, SECOND = "Bees make honey .", "The bees fly ."
OTHER = pairs.OWN["en"].other
CELLS = {
    "same_right": (FIRST, SECOND),
    "same_wrong": (SECOND, FIRST),
    "other_right": (FIRST, OTHER),
    "other_wrong": (OTHER, FIRST),
}
SHOWN = ("found", "expected", "verdicts", "notes", "verdict", "next_sentence", "next effects")
SHOWN += ("sentence_order", "order effects", "used", "alike", "blind", "reading", "code")
LINES = [FIRST, SECOND, OTHER] * 4


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Small random models: one with each pair head, one with neither."""
    folder = tmp_path_factory.mktemp("pairs-models")
    tokenizer = cm.Tokenizer.train(LINES, vocabulary=150)
    small = narrow(cm.size("albert-base"), width=64, inner=128)
    heads = {
        "order": (small, ["masked_token", "sentence_order"]),
        "plain": (cm.size("bert-mini"), ["masked_token"]),
        "follows": (cm.size("bert-mini"), ["masked_token", "next_sentence"]),
    }
    for seed, (name, (config, names)) in enumerate(heads.items()):
        config = config.with_vocabulary(tokenizer.vocabulary)
        generator = torch.Generator().manual_seed(seed)
        cm.Model.new(config, tokenizer, heads=names, generator=generator).save(folder / name)
    return folder


@pytest.fixture
def session(models, monkeypatch):
    monkeypatch.setenv("CLOZE_MODELS", str(models))
    session = Session()
    yield session
    session.close()


def question(text=FIRST, model="follows", **values):
    asked = {"sentence": {"text": text, "model": model}, "kind": "own", "second": SECOND}
    return {**asked, "example": -1, **values}


def ask(session, **values):
    found = asyncio.run(tab.show(session, question(**values)))
    return dict(zip(SHOWN, found, strict=True))


def measured(session):
    async def last():
        return [found async for found in tab.measure(session, question())][-1]

    return dict(zip(("said", "counts", "wins"), asyncio.run(last()), strict=True))


def rows(figure):
    return figure.layout.meta["rows"]


def near(value):
    return pytest.approx(list(value) if isinstance(value, tuple) else value, abs=1e-6)


def test_verdicts_are_those_of_judge_pair(session):
    answer = ask(session)
    shown = rows(answer["verdicts"])
    for place, (head, name) in enumerate(
        (("next_sentence", "follows"), ("sentence_order", "order"))
    ):
        model = session.model(name)
        now = judge_pair(model, FIRST, SECOND)
        assert now.head == head
        # Asked together with other pairs, so the last bits may differ.
        both = shown[2 * place : 2 * place + 2]
        assert [row[1:3] for row in both] == [[name, label] for label in now.labels]
        assert [row[3] for row in both] == near(list(now.probabilities))
        assert both[0][4:] == [FIRST, SECOND]
        cells = rows(answer[head])
        assert [tuple(row[4:]) for row in cells] == [*CELLS.values()]
        yes = [judge_pair(model, *texts).probabilities[0] for texts in CELLS.values()]
        assert [row[2] for row in cells] == near(yes)
        effect = answer["next effects" if place == 0 else "order effects"]
        for cost in (yes[0] - yes[2], yes[0] - yes[1]):
            assert abs(cost) < words.UNCHANGED or f"{100 * abs(cost):.1f} points" in effect


def test_what_a_small_or_a_turned_effect_means():
    said = words.effects("next_sentence", {"topic": 0.0, "order": -0.25})
    assert said.startswith(
        "Another topic leaves “next” as it is. The wrong order makes “next” 25.0"
    )
    assert said.endswith("points more probable.")

    def verdict(topic, order, known=None):
        heads = {"next_sentence": {"effects": {"topic": topic, "order": order}}}
        return words.verdict(heads, {"next_sentence": known})

    assert "goes by the topic, and it hardly minds the order" in verdict(0.8, 0.05)
    assert "minds the topic less than the order, and it goes by the order" in verdict(0.2, 0.6)
    assert "it goes by the topic, and it prefers the wrong order" in verdict(0.82, -0.287)
    assert "hardly minds the topic, and it prefers the wrong order" in verdict(0.05, -0.6)
    assert "hardly tells the pairs apart" in verdict(0.05, 0.05)
    assert "only guesses" in verdict(0.8, 0.05, {"guesses": True})


def test_each_head_answers_by_the_chosen_model_or_the_first_that_can(session):
    assert ask(session)["found"]["by"] == {"follows": "en", "order": "en"}
    # bert-mini has a next-sentence head and comes before the others.
    first = "bert-mini" if "next_sentence" in session.model("bert-mini").heads else "follows"
    for name in ("order", "plain"):
        assert next(iter(ask(session, model=name)["found"]["by"])) == first


def test_a_head_that_nobody_has_is_none():
    assert pairs.judges([], "x", ["masked_token"]) == {"next_sentence": [], "sentence_order": []}


def test_a_model_with_both_heads_answers_by_its_first():
    found = pairs.judges([], "both", ["sentence_order", "next_sentence"])
    assert found == {"next_sentence": ["both"], "sentence_order": []}


def test_similarity_is_that_of_the_similarity_head(session):
    model = session.model("plain")
    alike = rows(ask(session, model="plain")["alike"])
    for (_, found, _), pooling in zip(alike, ("token", "mean"), strict=True):
        twin = model.with_head("similarity", pooling=pooling)
        batch = replace(twin.batch([FIRST]), second=twin.batch([SECOND]))
        with torch.inference_mode():
            value = twin.heads["similarity"].answer(twin.encoder, batch)
        assert found == pytest.approx(float(value), abs=1e-5)
    with torch.inference_mode():
        hidden = [model.encoder(model.batch([text])).hidden[0, 0] for text in (FIRST, OTHER)]
    assert alike[0][2] == pytest.approx(float(F.cosine_similarity(*hidden, dim=0)), abs=1e-5)


def test_the_token_of_the_whole_text_is_none_that_was_typed():
    pieces = cm.Tokenizer.train(LINES, vocabulary=150, template=Template.trailing(Specials()))
    config = tiny("xlnet-base-cased").with_vocabulary(pieces.vocabulary)
    model = cm.Model.new(config, pieces, generator=torch.Generator().manual_seed(1))
    text = "Bees [CLS] fly ."
    (encoding,) = model.encode([text])
    assert encoding.ids.count(model.tokenizer.cls_id) == 2
    with torch.inference_mode():
        found, _ = pairs.read_alone(model, text)
        assert found.equal(model.encoder(model.collate([encoding])).hidden[0, -1])


def test_the_input_is_that_of_the_tokenizer(session):
    shown = ask(session)["reading"]
    (encoding,) = session.model("follows").encode([(FIRST, SECOND)])
    assert [piece["id"] for piece in shown["pieces"]] == encoding.ids
    assert [piece["segment"] for piece in shown["pieces"]] == encoding.segment_ids
    assert [piece["special"] for piece in shown["pieces"]] == encoding.special
    assert shown["segments"] == "table"


def test_examples_stand_in_the_primer_as_they_say():
    passages = [d for f in sorted(pairs.PRIMER.glob("english-*.txt")) for d in documents.read([f])]
    for number in range(30):
        found = pairs.example(number)
        assert found == pairs.example(number)
        (mine,) = [p for p in passages if found.first in p and found.next in p and found.same in p]
        at = mine.index(found.first)
        assert mine[at + 1] == found.next
        assert abs(mine.index(found.same) - at) > 1
        assert found.other not in mine
        assert found.pair("swapped") == (found.next, found.first)
    assert len({pairs.example(number) for number in range(30)}) > 20


def test_measuring_counts_what_judge_pair_says(session, monkeypatch):
    monkeypatch.setattr(pairs, "MEASURED", 3)
    shown = [row[2] for row in rows(measured(session)["counts"])]
    by = ask(session)["found"]["by"]
    wanted = [
        sum(
            judge_pair(session.model(name), *pairs.example(n).pair(kind)).probabilities[0] >= 0.5
            for n in range(3)
        )
        for name in by
        for kind in pairs.KINDS
    ]
    assert shown == wanted


def test_the_true_pair_against_the_others_by_both_kinds_of_encoder(session, monkeypatch):
    monkeypatch.setattr(pairs, "MEASURED", 4)
    found = rows(measured(session)["wins"])
    assert len(found) == 4 * 3, "two heads, two cosines; three kinds"
    told = {(row[0].split(" (")[0], row[1]): row[2:] for row in found}
    model = reader = session.model("follows")
    for kind in ("swapped", "same", "other"):
        heads, means = 0, 0
        for number in range(4):
            texts = pairs.example(number)
            yes = [judge_pair(reader, *texts.pair(k)).probabilities[0] for k in ("next", kind)]
            with torch.inference_mode():
                alike = [
                    pairs.cosines(model, *(pairs.read_alone(model, t) for t in texts.pair(k)))[
                        "mean"
                    ]
                    for k in ("next", kind)
                ]
            heads += yes[0] > yes[1]
            means += kind != "swapped" and alike[0] > alike[1]
        assert told["Next sentence", words.ABOVE[kind]][0] == heads
        # A cosine is symmetric: against the swapped pair there is nothing to win.
        tied = 4 if kind == "swapped" else 0
        times, said = told["Cosine of the means", words.ABOVE[kind]]
        assert times == means + tied / 2
        assert said == (f"{means} of 4, {tied} ties" if tied else f"{means} of 4")


def test_a_judge_that_always_says_the_same_is_told(session, monkeypatch):
    monkeypatch.setattr(pairs, "MEASURED", 3)
    same = dict.fromkeys(pairs.KINDS, 0.1)
    told = dict(zip(pairs.KINDS, (0.9, 0.9, 0.1, 0.1), strict=True))
    given = {"next_sentence": told, "sentence_order": same}
    monkeypatch.setattr(pairs, "scores", lambda *_: given)
    said = measured(session)["said"]
    assert "order says “swapped” to 12 of 12 pairs: this judge always answers the same" in said
    assert said.count("this judge") == 1


@pytest.mark.parametrize(
    ("yes", "same"), [(0, True), (4, True), (5, False), (48, False), (92, True), (96, True)]
)
def test_constant_means_nearly_always_the_same(yes, same):
    assert pairs.constant(yes, 96) is same
    assert not pairs.constant(0, 0)


def test_a_single_tie_is_one_tie():
    found = {kind: {"won": 12, "tied": n} for n, kind in enumerate(("other", "same", "swapped"))}
    figure = tab.wins_figure({"cls": found}, {}, "m")
    told = ["12 of 24", "12 of 24, 1 tie", "12 of 24, 2 ties"]
    assert [row[3] for row in rows(figure)] == told


def test_wins_and_ties_are_counted():
    found = [
        {"next": 0.9, "swapped": 0.9, "same": 0.1, "other": 0.95},
        {"next": 0.5, "swapped": 0.4, "same": 0.5, "other": 0.1},
    ]
    assert pairs.wins(found) == {
        "swapped": {"won": 1, "tied": 1},
        "same": {"won": 1, "tied": 1},
        "other": {"won": 1, "tied": 0},
    }


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"text": ""}, "no text"),
        ({"second": " "}, "second text is empty"),
        ({"second": None}, "second text is empty"),
        ({"second": "x" * 20_001}, "20,001"),
        ({"example": "1"}, "example"),
        ({"example": -2}, "example"),
        ({"kind": "next", "example": 1.5}, "example"),
        ({"kind": "next", "example": 10**9}, "example"),
        ({"model": "../etc"}, "no model"),
        ({"model": 4}, "No model"),
    ],
)
def test_bad_questions_get_a_sentence(session, values, word):
    with pytest.raises(InputError, match=re.escape(word)):
        ask(session, **values)


def test_nothing_is_answered_before_the_lab_is_seen(session):
    found = asyncio.run(tab.show(session, {**question(), "sentence": None}))
    assert [each == gr.skip() for each in found] == [True] * len(SHOWN)


def test_examples_are_judged_whatever_stands_in_the_texts(session):
    assert pairs.shown_example(4) != pairs.example(4)
    assert pairs.shown_example(5) == pairs.example(5)
    for number, kind in ((-1, "next"), (4, "swapped"), (5, "other")):
        found = ask(session, kind=kind, example=number, second="")["found"]
        texts = pairs.shown_example(max(0, number)).pair(kind)
        assert (found["kind"], found["first"], found["second"]) == (kind, *texts)
    used = ask(session, example=5)["used"]
    assert pairs.example(5).other in used, "a text of one's own goes with the last example's other"


def test_a_chinese_model_gets_chinese_examples_and_no_english_stand_in(session, monkeypatch):
    passages = list(documents.read(sorted(pairs.PRIMER.glob("chinese-*.txt"))))
    for number in range(20):
        found = pairs.example(number, "zh")
        (mine,) = [p for p in passages if found.first in p and found.next in p]
        assert mine[mine.index(found.first) + 1] == found.next
        assert found.other not in mine
    chinese = session.model("follows").tokenizer
    monkeypatch.setattr(tab, "language_of", lambda read: "zh" if read is chinese else "en")
    found = ask(session, kind="next", example=5)
    assert found["found"]["first"] == pairs.example(5, "zh").first
    assert found["found"]["by"] == {"follows": "zh"}
    # Installed it is, but it reads English: the page says so.
    assert "reads Chinese is installed. order has such a head" in found["notes"]
    # What the lab began with is said in the model's language.
    begun = ask(session, second=pairs.OWN["en"].second)["found"]
    assert begun["second"] == pairs.OWN["zh"].second


def test_long_texts_are_cut_and_say_so(session):
    reading = ask(session, text="honey " * 900, second="bees " * 900)["reading"]
    assert "The rest was cut off." in reading["said"]
    assert len(reading["pieces"]) == session.model("follows").longest


def test_verdicts_and_cosines_of_texts_that_are_cut_say_so(session):
    assert session.model("follows").longest == session.model("order").longest == 512
    both = "{0} reads {1} pieces of both texts together; the rest is cut off."
    long = ask(session, text="honey " * 300, second="bees " * 300)
    assert all(both.format(name, 512) in long["notes"] for name in ("follows", "order"))
    assert not long["blind"]
    alone = ask(session, text="honey " * 900)["blind"]
    assert alone == "follows reads the first 512 pieces of each text; the rest is cut off."
    short = ask(session)
    assert "cut off" not in f"{short['notes']} {short['blind']}"


def test_the_code_shown_recomputes_the_numbers(session):
    answer = ask(session)
    printed: list = []
    with torch.inference_mode():
        exec(answer["code"], {"print": printed.append})
    follows, order, cosine, segments = printed
    shown = [row[3] for row in rows(answer["verdicts"])]
    assert shown == near([*follows.probabilities, *order.probabilities])
    assert float(cosine) == pytest.approx(rows(answer["alike"])[1][1], abs=1e-5)
    assert segments == [piece["segment"] for piece in answer["reading"]["pieces"]]


def test_a_head_says_how_far_it_can_be_trusted(session, models):
    figures = {"head": "sentence_order", "accuracy": 0.53, "pairs": 200}
    (models / "order" / "evaluation.json").write_text(json.dumps({"text_pairs": figures}))
    # Two standard errors of 400 guesses are 5 points.
    assert pairs.reliability(figures) == {"right": 0.53, "questions": 400, "guesses": True}
    notes = ask(session)["notes"]
    assert "Sentence order: Of 400 held-out questions" in notes
    assert "no better than guessing" in notes
    assert "Next sentence" not in notes
    many = {"right": 0.9, "questions": 1000, "guesses": False}
    told = words.notes({"sentence_order": many}, {"next_sentence": "x"}, {}, "en")
    assert "Of 1,000 held-out questions" in told
    assert not pairs.reliability(figures | {"pairs": 5000})["guesses"]
    assert not pairs.reliability(figures | {"accuracy": 0.56})["guesses"]
    (models / "order" / "evaluation.json").unlink()
