"""The Why tab without a browser: every head, files, bad input, jobs that stop."""

import asyncio
import json
from threading import Event

import gradio as gr
import pytest

from app.labs.why import answers as why
from app.labs.why import methods as why_methods
from app.labs.why import replies as tab
from app.labs.why import service as why_service
from app.labs.why import words
from app.labs.why.methods import METHODS
from app.labs.why.service import Progress
from app.serving.ask import Ask, Mark
from app.serving.desk import Desk
from core_models.prediction.targets import TargetFunction
from tests.app.why_questions import MARKS, MODEL, TEXT, ask, finish, question, told, without_end
from tests.waiting import until
from viz.why import Attributed, attributions


@pytest.mark.parametrize(
    ("values", "kind", "answers"),
    [
        ({"model": "sleuth", "position": 4}, "replaced", ["real", "replaced"]),
        ({"model": "mood"}, "class", ["sad", "glad"]),
        ({"model": "mood", "second": "Bees fly ."}, "class", ["sad", "glad"]),
        ({"model": "names", "position": 4}, "tag", ["O", "PLACE"]),
        ({"model": "grader"}, "score", []),
        ({"model": "reader", "second": "What is it ?"}, "start", []),
        ({"model": "reader", "second": "What is it ?", "kind": "end"}, "end", []),
        ({"kind": "class", "second": "It is large ."}, "class", ["next", "random"]),
    ],
)
def test_every_head_is_explained_and_adds_up(explainer, values, kind, answers):
    found = ask(explainer, **values, steps=100)
    assert found["error"] is None
    scene, answer = found["scene"], found["answer"]
    assert scene["kind"] == kind
    assert sorted(choice["name"] for choice in scene["choices"]) == sorted(answers)
    assert len(answer["methods"]["occlusion"]) == len(scene["tokens"])
    difference = answer["value"] - answer["start"]
    assert answer["sum"] == pytest.approx(difference, abs=0.02 * max(0.5, abs(difference)))
    if "second" in values:
        assert {token["number"] for token in scene["tokens"]} == {0, 1}
    json.dumps(found)


def test_a_word_without_a_piece_is_no_answer(explainer):
    marks = [{"position": 4, "case": "mask"}]
    found = ask(explainer, text="I live in عاصمة .", marks=marks)
    assert found["error"] is None
    scene = found["scene"]
    assert "[UNK]" not in [choice["name"] for choice in scene["choices"]]
    assert not any(choice["original"] for choice in scene["choices"])
    best = max(scene["choices"], key=lambda choice: choice["probability"])
    assert scene["answer"] == best["index"]


def test_the_second_text_is_shown_in_its_own_letters(explainer):
    tokens = ask(explainer, kind="class", second="It is LARGE .")["scene"]["tokens"]
    assert [t["text"] for t in tokens if t["number"] == 1] == ["It", "is", "LARGE", "."]


def test_the_answer_of_a_reader_starts_in_the_sentence_or_nowhere(explainer):
    scene = ask(explainer, model="reader", second="What is it ?")["scene"]
    places = [scene["tokens"][place] for place in scene["places"]]
    assert places[0]["piece"] == "[CLS]"
    assert "".join(token["text"] for token in places[1:]) == TEXT.replace(" ", "")


def test_the_picture_shows_every_method_beside_its_numbers(explainer):
    found = ask(explainer, marks=MARKS)
    chart, methods = (
        tab.pictures(found["scene"], found["answer"])["chart"],
        found["answer"]["methods"],
    )
    layout = chart.layout
    assert [list(map(float, row[2:])) for row in layout["meta"]["rows"]] == [
        pytest.approx([methods[name][place] for name in METHODS]) for place in range(9)
    ]
    assert list(layout["meta"]["rows"][6][:2]) == ["Paris", "[MASK]"]
    for trace, name in zip(chart.data, METHODS, strict=True):
        most = max(map(abs, methods[name]))
        assert trace["y"] == pytest.approx([100 * value / most for value in methods[name]])
    (asked,) = layout["shapes"]
    assert (asked["x0"], asked["x1"]) == (5.5, 6.5)


def token(text, **more):
    return Attributed(text=text, read=text, **more)


def test_pictures_escape_texts_and_refuse_nonsense():
    tokens = [token("<b>&"), token("a"), token("a", second=True)]
    figure = attributions(tokens, {"m": [-2.0, 1.0, 0.0]}, title="t")
    labels = figure.data[0].x
    assert labels[0] == "&lt;b&gt;&amp;"
    assert len(set(labels)) == 3  # the same word twice is two groups
    assert list(figure.data[0].y) == [-100, 50, 0]
    assert figure.layout.shapes[0].x0 == 1.5
    with pytest.raises(ValueError, match="nothing to draw"):
        attributions([], {}, title="t")
    for bad in ([float("nan")], [1.0, 2.0]):
        with pytest.raises(ValueError, match="finite number for each of 1"):
            attributions([token("a")], {"m": bad}, title="t")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "No word is hidden"),
        ({"kind": "replaced"}, "cannot be asked for “replaced”"),
        ({"kind": "class"}, "reads two texts"),
        ({"model": "reader"}, "no question yet"),
        ({"model": "twins"}, "no head whose answers can be explained"),
        ({"model": "sleuth", "kind": "piece"}, "predicts none"),
        ({"model": "nobody"}, "There is no model"),
        ({"text": " "}, "There is no text yet"),
        ({"marks": [{"position": 400, "case": "mask"}]}, "beyond the text"),
        ({"marks": MARKS, "steps": 10**9}, "steps is"),
        ({"marks": MARKS, "steps": "many"}, "steps is"),
        ({"marks": MARKS, "window": 0}, "window is"),
        ({"marks": MARKS, "baseline": "noise"}, "must be one of mask, pad, zero"),
        ({"marks": MARKS, "scale": "loud"}, "must be one of log_probability"),
        ({"marks": MARKS, "word": [1]}, "word is"),
        ({"marks": MARKS, "word": "x" * 999}, "a word may have"),
    ],
)
def test_bad_input_is_told(explainer, values, said):
    assert said in ask(explainer, **values)["error"]


@pytest.mark.parametrize("place", [122, 124])  # what ends the first text, a piece of the second
def test_no_word_of_the_second_text_is_hidden_for_one_that_is_cut_off(explainer, place):
    marks = [{"position": place, "case": "mask"}]
    values = {"text": "bees make honey " * 100, "kind": "class", "second": "It is large ."}
    told = ask(explainer, marks=marks, **values)["error"]
    assert "Beside the second sentence bert-mini reads only the first 122 tokens" in told


def test_errors_say_what_else_could_be_asked(explainer):
    assert ask(explainer)["kinds"] == ("piece", "class")
    assert ask(explainer, model="sleuth", kind="piece")["kinds"] == ("replaced",)


def test_words_that_do_not_fit_become_notes_and_the_default_is_explained(explainer):
    found = ask(explainer, marks=MARKS, word="龘", against="parisparis")
    assert len(found["scene"]["notes"]) == 2
    assert found["scene"]["against"] is None
    original = next(c["index"] for c in found["scene"]["choices"] if c["original"])
    assert found["scene"]["answer"] == original


def test_with_every_word_hidden_nothing_speaks(explainer):
    marks = [{"position": place, "case": "mask"} for place in range(1, 8)]
    found = ask(explainer, marks=marks)
    assert "Every word is hidden" in found["scene"]["notes"][0]
    assert found["answer"]["methods"]["integrated"] == [0.0] * 9
    assert found["answer"]["error_share"] is None
    assert found["answer"]["agreement"][0][3] is None
    caption = words.agreement_table(found["answer"])["caption"]
    assert caption == "With fewer than three words there is nothing to compare."


def test_pieces_are_counted_as_pieces(explainer):
    found = ask(explainer, text="[MASK] unbelievably .", steps=10)
    count = sum(not each["special"] and not each["hidden"] for each in found["scene"]["tokens"])
    assert count > len(["unbelievably", "."])
    assert f"give to the {count} pieces" in words.agreement_table(found["answer"])["caption"]


def test_one_word_and_512_pieces(explainer):
    assert ask(explainer, text="[MASK]")["error"] is None
    long = told(explainer, text="bees " * 600, model="names", position="#4", steps=300)
    assert "%" in long["working"]
    assert len(long["position"].choices) == 510
    explainer.desk.leave("me")
    finish(explainer.desk)


def test_other_marks_are_what_the_model_reads(explainer, why_session):
    piece = why_session.model(MODEL).tokenizer.id("spain")
    marks = [*MARKS, {"position": 4, "case": "random", "piece": piece}]
    tokens = ask(explainer, marks=marks)["scene"]["tokens"]
    assert (tokens[4]["text"], tokens[4]["read"], tokens[4]["changed"]) == ("France", "spain", True)


def test_captum_that_is_missing_is_told(explainer, monkeypatch):
    monkeypatch.setattr(why_service, "installed", lambda: False)
    assert "captum is not installed" in ask(explainer, marks=MARKS)["error"]


def test_a_failure_inside_is_told_without_its_text(explainer, monkeypatch):
    def fail(*_):
        raise RuntimeError("a secret path")

    monkeypatch.setattr(why, "attribute", fail)
    found = ask(explainer, marks=MARKS, word="rome")
    assert found["error"] == why_service.BROKEN


# --- jobs -----------------------------------------------------------------------------------------


def test_giving_up_really_stops_the_work(explainer, why_session):
    """A long explanation ends within a chunk, and its passes with it."""
    values = {"text": "word " * 500, "marks": MARKS, "steps": 300}
    passes = []
    run = TargetFunction.__call__

    def counted(self, vectors):
        passes.append(vectors.shape[0])
        return run(self, vectors)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TargetFunction, "__call__", counted)
        found = told(explainer, **values)
        assert found["working"]
        assert found["clock"].active
        assert found["cancel"].visible
        stopped = told(explainer, **values, given_up=found["shown"])
        assert stopped["again"].visible
        assert not stopped["cancel"].visible
        assert not stopped["clock"].active
        finish(explainer.desk)
        count = len(passes)
        assert count < 200
        still = told(explainer, **values, given_up=found["shown"])
        assert still["again"].visible
        assert not explainer.desk.busy()
        assert len(passes) == count
        other = told(explainer, **{**values, "steps": 290}, given_up=found["shown"])
        assert other["working"]  # another question is computed
        assert other["shown"] != found["shown"]
        assert told(explainer, **values)["working"]
    explainer.desk.leave("me")
    finish(explainer.desk)


def test_clicks_of_others_are_answered_while_it_computes(explainer, why_session):
    values = {"text": "word " * 500, "marks": MARKS, "steps": 290, "visitor": "slow"}

    async def both():
        model, asked, _ = await explainer.plan(why.read(question(**values)))
        assert isinstance(await explainer.explain(model, asked, "slow"), Progress)
        await why_session.fill(Ask(text=TEXT + " now", model=MODEL, marks=(Mark(position=6),)))
        assert explainer.desk.busy()

    asyncio.run(both())
    explainer.desk.leave("slow")
    finish(explainer.desk)


def test_a_slider_computes_its_own_method_only(explainer, monkeypatch):
    computed = []
    run = why_methods.attribute

    def noted(method, *rest):
        computed.append(method)
        return run(method, *rest)

    monkeypatch.setattr(why, "attribute", noted)
    ask(explainer, marks=MARKS)
    assert computed == list(METHODS)
    ask(explainer, marks=MARKS, steps=20)
    ask(explainer, marks=MARKS, window=2)
    ask(explainer, marks=MARKS)
    assert computed[4:] == ["integrated", "occlusion"]
    ask(explainer, marks=MARKS, baseline="zero")
    assert computed[6:] == ["integrated", "occlusion"]


# --- what the lab shows ---------------------------------------------------------------------------


def shown(explainer, **values):
    """What is told once nothing is computed any more."""
    found = {}

    def computed():
        found.update(told(explainer, **values))
        return not found["working"]

    assert until(computed)
    return found


def labels(part):
    return [label for label, _ in part.choices]


def test_choices_show_what_is_chosen_without_being_written_to(explainer):
    found = shown(explainer, marks=MARKS, against="london")
    assert labels(found["kind"]) == ["The word in a gap", "Next sentence"]
    values = dict(found["word"].choices)
    paris = next(label for label in values if label.startswith("paris"))
    assert paris.endswith("(as written)")
    assert values[paris] == ""
    rival = next(label for label in labels(found["against"]) if label.startswith("london"))
    assert dict(found["against"].choices)[rival] == "london"
    assert found["scale"].visible == "hidden" == found["position"].visible
    piece = next(value for value in values.values() if value)
    assert dict(shown(explainer, marks=MARKS, word=piece)["word"].choices)[paris] != ""
    chinese = shown(explainer, marks=MARKS, language="zh")
    assert labels(chinese["kind"]) == ["空位里的词", "下一句"]


def test_a_question_that_is_shown_is_not_drawn_again(explainer):
    found = shown(explainer, marks=MARKS)
    again = told(explainer, marks=MARKS, shown=found["shown"])
    assert again["chart"] == again["word"] == again["shown"] == gr.skip()
    other = shown(explainer, marks=MARKS, shown=found["shown"], window=2)
    assert other["chart"] != gr.skip()


def test_an_error_clears_the_picture_and_offers_other_questions(explainer):
    found = told(explainer)
    assert "No word is hidden" in found["problem"]
    assert (found["chart"], found["said"], found["shown"]) == (None, "", None)
    assert len(found["kind"].choices) == 2


@pytest.mark.parametrize("of", [None, "Two sentences", {"text": "another"}, 3])
def test_choices_of_another_sentence_are_not_asked(explainer, of):
    assert set(map(str, told(explainer, marks=MARKS, of=of).values())) == {str(gr.skip()), ""}


def test_the_check_is_of_the_question_that_it_was_asked_for(explainer):
    now = shown(explainer, marks=MARKS)["shown"]
    draw = [2, now]

    def checked(**values):
        return asyncio.run(tab.check(explainer, question(marks=MARKS, **values)))

    assert checked(draw=None)[3:] == [gr.skip()] * 2
    found = []

    def done():
        found[:] = checked(draw=draw)
        return not found[0]

    assert until(done)
    assert len(found[4]["rows"]) == 5
    assert "draw 2" in found[4]["caption"]
    assert checked(draw=draw, window=2)[3:] == ["", None]
    assert checked(draw=draw, sentence={"text": "another"}) == [gr.skip()] * 5


def test_a_check_is_given_up(explainer, monkeypatch):
    now = shown(explainer, marks=MARKS)["shown"]
    monkeypatch.setattr(why, "attribute", without_end(why.attribute, Event()))
    working, clock, cancel, *rest = asyncio.run(
        tab.check(explainer, question(marks=MARKS, draw=[3, now]))
    )
    assert working
    assert clock.active
    assert cancel.visible
    working, clock, cancel, *rest = asyncio.run(
        tab.check(explainer, question(marks=MARKS, draw=[3, None]))
    )
    assert working == ""
    assert not clock.active
    assert not cancel.visible
    assert rest == [gr.skip()] * 2
    finish(explainer.desk)


def test_numbers_are_written_as_people_read_them():
    numbers = {0.00012: "+1e-4", -12.34: "\u221212.3", 0.05: "+0.050", 0: "0.000", 345.6: "+346"}
    assert {value: words.number(value) for value in numbers} == numbers
    chances = {
        1.0: "100",
        0.9996: "99.96",
        0.99996: "99.99",
        0.467: "46.7",
        0.0042: "0.42",
        0.00002: "0.002",
    }
    assert {value: words.percent(value).split("\u00a0")[0] for value in chances} == chances


def test_nearly_all_is_not_all():
    said = [tab.progress(Progress(share=share, ahead=0)) for share in (0.0, 0.46, 0.97)]
    assert said == ["0 % are computed.", "40 % are computed.", "90 % are computed."]


def test_a_question_that_comes_late_is_not_given_up(session):
    """As where the machine was so busy that the page's next look came after the lease."""
    explainer = why_service.Explainer(session, desk=Desk(lease=-1.0))

    async def look():
        model, planned, _ = await explainer.plan(why.read(question(marks=MARKS)))
        return await explainer.explain(model, planned, "me")

    assert isinstance(asyncio.run(look()), Progress)
    explainer.desk.lease = 60.0
    assert until(lambda: not isinstance(asyncio.run(look()), Progress))
