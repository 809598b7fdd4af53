"""The Why tab without a browser: captum's methods by hand, numbers, jobs that stop, bad input."""

import asyncio
import csv
import io
import json
import time
from dataclasses import replace
from itertools import chain
from xml.etree import ElementTree

import pytest
import torch

import core_models as cm
from app import why, why_methods, why_service
from app.ask import Ask, Mark
from app.session import Session
from app.tabs import why as tab
from app.why_methods import METHODS, Options, Watched, agreement, attribute, hidden_groups
from core_models.prediction import fill
from core_models.prediction.passes import seen_with
from core_models.prediction.targets import Target, TargetFunction, frozen_copy
from viz.why import Attributed, attributions_svg

MODEL = "bert-mini"
TEXT = "The capital of France is Paris ."
MARKS = [{"position": 6, "case": "mask"}]
LINES = [TEXT, "Bees make honey , and the bees fly from flower to flower ."] * 4
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Small random models with heads that the shipped one lacks."""
    folder = tmp_path_factory.mktemp("why-models")
    tokenizer = cm.Tokenizer.train(LINES, vocabulary=150)
    config = replace(cm.size("bert-tiny").with_vocabulary(tokenizer.vocabulary), initial_std=0.2)
    start = cm.Model.new(config, tokenizer, heads=[], generator=torch.Generator().manual_seed(1))
    small = cm.size("electra-small-discriminator").with_vocabulary(tokenizer.vocabulary)
    sleuth = replace(small, schedule=(0, 1), initial_std=0.1)
    cm.Model.new(sleuth, tokenizer, heads=["replaced_token"]).save(folder / "sleuth")
    start.with_head("classify", ("sad", "glad")).save(folder / "mood")
    start.with_head("tag", ("O", "PLACE")).save(folder / "names")
    start.with_head("span").save(folder / "reader")
    start.with_head("regress").save(folder / "grader")
    start.with_head("similarity").save(folder / "twins")
    return folder


@pytest.fixture(scope="module")
def session(models):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOZE_MODELS", str(models))
        session = Session()
        yield session
        session.close()


@pytest.fixture
def explainer(session):
    return why_service.Explainer(session)


def ask(explainer, answer=tab.show, visitor="me", **values):
    """Ask as the page does, again and again until there is an answer."""
    question = {"rev": 7, "text": TEXT, "model": MODEL, "marks": [], **values}

    async def poll():
        while (found := await answer(explainer, question, visitor)).get("state") == "working":
            pass
        return found

    return asyncio.run(poll())


class Linear:
    """w . x over all vectors, as a target function."""

    def __init__(self, vectors, weights):
        self.vectors, self.weights = vectors, weights

    def __call__(self, vectors):
        return (vectors * self.weights).sum((1, 2))


def test_every_method_on_a_linear_function_by_hand(session):
    model = frozen_copy(session.model("sleuth"))
    (encoding,) = model.encode(["Bees make honey"])
    table = model.encoder.embeddings.pieces.weight
    vectors = table[torch.tensor(encoding.ids)][None]
    weights = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(1))
    told = []
    options = Options(steps=10)
    found = {
        method: attribute(
            method, Watched(Linear(vectors, weights), 99, told.append), model, encoding, options
        )
        for method in METHODS
    }
    words = torch.tensor([not special for special in encoding.special])[:, None]
    gap = torch.where(words, table[model.tokenizer.mask_id], vectors[0])
    expected = {
        "integrated": ((vectors - gap) * weights).sum(-1)[0],
        "gradient": (vectors * weights).sum(-1)[0],
        "saliency": weights.norm(dim=-1)[0],
    }
    for method, values in expected.items():
        assert found[method]["values"] == pytest.approx(values.tolist(), abs=1e-5)
    # Pieces of one word are hidden together, special ones alone.
    drop = ((vectors - table[model.tokenizer.mask_id]) * weights).sum(-1)[0]
    for place, value in enumerate(found["occlusion"]["values"]):
        word = encoding.words[place]
        together = (
            [p for p, w in enumerate(encoding.words) if w == word] if word is not None else []
        )
        assert value == pytest.approx(float(drop[together or [place]].sum()), abs=1e-4)
    assert found["integrated"]["delta"] == pytest.approx(0, abs=1e-4)
    assert len(told) >= 7  # each pass is watched


@pytest.mark.parametrize(
    ("baseline", "scale"), [("mask", "log_probability"), ("pad", "probability"), ("zero", "logit")]
)
def test_integrated_gradients_are_complete_within_their_delta(explainer, baseline, scale):
    errors = {}
    for steps in (10, 200):
        answer = ask(explainer, marks=MARKS, baseline=baseline, scale=scale, steps=steps)["answer"]
        total = sum(answer["methods"]["integrated"])
        assert answer["sum"] == pytest.approx(total)
        assert answer["error"] == pytest.approx(total - (answer["value"] - answer["start"]))
        assert answer["error"] == pytest.approx(answer["delta"], abs=2e-5)
        errors[steps] = abs(answer["error"])
    assert errors[200] < max(1e-4, errors[10] + 1e-6)
    assert errors[200] < 0.01 * max(0.1, abs(answer["value"] - answer["start"]))


def test_values_are_those_of_fill(explainer, session):
    model = session.model(MODEL)
    found = ask(explainer, marks=MARKS, scale="probability")
    (prediction,) = fill(model, TEXT, masks=[6], top_k=5).predictions
    assert found["answer"]["value"] == pytest.approx(prediction.original.probability, abs=1e-6)
    best = {c.id: c.probability for c in prediction.candidates}
    shown = {c["index"]: c["probability"] for c in found["scene"]["choices"]}
    assert all(shown[index] == pytest.approx(chance, abs=1e-6) for index, chance in best.items())
    assert found["scene"]["answer"] == prediction.original.id
    assert [c["original"] for c in found["scene"]["choices"]].count(True) == 1


@pytest.mark.parametrize("window", [1, 2, 3, 8])
def test_occlusion_is_the_mean_drop_over_the_windows_that_cover_a_word(explainer, session, window):
    found = ask(explainer, marks=MARKS, window=window)
    model = session.model(MODEL)
    gap = model.tokenizer.mask_id
    (encoding,) = model.encode([TEXT])
    target = Target(kind="piece", position=6, answer=encoding.ids[6])

    def value(*hidden):
        seen = seen_with(encoding, dict.fromkeys([6, *hidden], gap))
        function = TargetFunction(model, seen, target)
        with torch.no_grad():
            return float(function(function.vectors))

    whole = value()
    words = list(range(1, 8))  # every word of this text is one piece
    for place in (0, 2, 4, 8):
        drops = []
        for begin in range(min(window, len(words))):
            if place in words:
                mine = (place - 1 - begin) // window
                hidden = [p for p in words if (p - 1 - begin) // window == mine]
            else:
                hidden = [place]
            drops.append(whole - value(*hidden))
        expected = sum(drops) / len(drops)
        assert found["answer"]["methods"]["occlusion"][place] == pytest.approx(expected, abs=1e-4)


def test_windows_cover_every_word_equally_often(session):
    model = session.model(MODEL)
    (encoding,) = model.encode(["Unbelievably large windows of words are moved over it ."])
    for window in (1, 3, 8):
        masks = hidden_groups(encoding, window)
        assert len(masks) == window
        for mask in masks:
            groups = [
                [p for p, g in enumerate(mask.tolist()) if g == n] for n in set(mask.tolist())
            ]
            assert sorted(chain(*groups)) == list(range(len(encoding)))
            for group in groups:
                words = {encoding.words[p] for p in group}
                assert len(words) <= window
                if any(encoding.special[p] for p in group):
                    assert len(group) == 1


def test_a_contrast_is_the_difference_of_both_attributions(explainer):
    paris, london, both = (
        ask(explainer, marks=MARKS, scale="logit", **words)["answer"]
        for words in ({"word": "paris"}, {"word": "london"}, {"word": "paris", "against": "london"})
    )
    assert both["value"] == pytest.approx(paris["value"] - london["value"], abs=1e-4)
    for method in ("integrated", "gradient", "occlusion"):
        rows = zip(paris["methods"][method], london["methods"][method], strict=True)
        expected = [a - b for a, b in rows]
        assert both["methods"][method] == pytest.approx(expected, abs=2e-3)


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


def test_the_second_text_is_shown_in_its_own_letters(explainer):
    tokens = ask(explainer, kind="class", second="It is LARGE .")["scene"]["tokens"]
    assert [t["text"] for t in tokens if t["number"] == 1] == ["It", "is", "LARGE", "."]


def test_the_answer_of_a_reader_starts_in_the_sentence_or_nowhere(explainer):
    scene = ask(explainer, model="reader", second="What is it ?")["scene"]
    places = [scene["tokens"][place] for place in scene["places"]]
    assert places[0]["piece"] == "[CLS]"
    assert "".join(token["text"] for token in places[1:]) == TEXT.replace(" ", "")


def test_ranks_agree_with_scipy_and_ignore_signs():
    from scipy.stats import spearmanr

    rows = {"a": [0.0, 1.0, -5.0, 3.0, 3.0, 9.0], "b": [9.0, 0.1, 0.4, -0.2, 0.8, 7.0]}
    kept = [False, True, True, True, True, True]
    expected = spearmanr([1, 5, 3, 3, 9], [0.1, 0.4, 0.2, 0.8, 7]).statistic
    found = agreement(rows, kept)
    assert found[0][1] == pytest.approx(expected) == found[1][0]
    assert found[0][0] == pytest.approx(1)
    assert agreement({"a": [1.0, 1.0, 1.0]}, [True] * 3) == [[None]]
    assert agreement({"a": [1.0, 2.0]}, [True] * 2) == [[None]]


def test_the_check_draws_the_top_anew(explainer):
    found = ask(explainer, tab.check, marks=MARKS, seed=3)["answer"]
    assert [stage["blocks"] for stage in found["stages"]] == [0, 1, 2, 3, 4]
    again = ask(explainer, tab.check, marks=MARKS, seed=3)["answer"]
    assert again == found
    other = ask(explainer, tab.check, marks=MARKS, seed=4)["answer"]
    assert other["stages"] != found["stages"]
    base = ask(explainer, marks=MARKS)["answer"]
    assert all(stage["value"] < base["value"] - 1 for stage in found["stages"])
    values = [v for stage in found["stages"] for v in stage["alike"].values() if v is not None]
    assert all(-1.0001 <= value <= 1.0001 for value in values)
    assert min(values) < 0.9


def test_the_code_on_the_page_gives_the_same_numbers(explainer, capsys):
    found = ask(explainer, marks=MARKS, word="paris", against="london", steps=30)
    place: dict = {}
    exec(found["code"], place)
    methods = found["answer"]["methods"]
    for name in ("integrated", "gradient", "saliency"):
        assert place[name].tolist() == pytest.approx(methods[name], abs=1e-4)
    assert "the sum misses the difference by" in capsys.readouterr().out
    pair = ask(explainer, kind="class", second='It\'s "large" .', steps=10)
    exec(pair["code"], place)
    assert place["integrated"].tolist() == pytest.approx(
        pair["answer"]["methods"]["integrated"], abs=1e-4
    )


def test_files(explainer):
    answer = ask(explainer, marks=MARKS)["answer"]
    table = ask(explainer, tab.export, marks=MARKS, what="csv")
    rows = list(csv.DictReader(io.StringIO(table["text"])))
    shown = [float(row["integrated_gradients"]) for row in rows]
    assert shown == pytest.approx(answer["methods"]["integrated"])
    assert [row["read"] for row in rows][6] == "[MASK]"
    picture = ask(explainer, tab.export, marks=MARKS, what="svg", method="occlusion")
    root = ElementTree.fromstring(picture["text"])
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert "France" in texts
    assert f"{answer['methods']['occlusion'][4]:+.3f}" in texts
    for values in ({"what": "exe"}, {"what": "svg", "method": "magic"}):
        assert "must be" in ask(explainer, tab.export, marks=MARKS, **values)["error"]


def test_pictures_escape_texts_and_refuse_nonsense():
    text = attributions_svg([Attributed(text="<b>&", value=-1.0)], title="t", method="m")
    assert "<b>" not in text
    ElementTree.fromstring(text)
    with pytest.raises(ValueError, match="nothing to draw"):
        attributions_svg([], title="t", method="m")
    with pytest.raises(ValueError, match="nan"):
        attributions_svg([Attributed(text="a", value=float("nan"))], title="t", method="m")


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
        ({"marks": MARKS, "scale": None}, "must be one of log_probability"),
        ({"marks": MARKS, "position": "six"}, "position is"),
        ({"marks": MARKS, "word": [1]}, "word is"),
        ({"marks": MARKS, "word": "x" * 999}, "a word may have"),
    ],
)
def test_bad_input_is_told(explainer, values, said):
    found = ask(explainer, **values)
    assert said in found["error"]
    assert found["rev"] == 7


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


def test_one_word_and_512_pieces(explainer):
    assert ask(explainer, text="[MASK]")["error"] is None
    question = {"rev": 1, "text": "bees " * 600, "model": "names", "position": 4, "steps": 300}
    long = asyncio.run(tab.show(explainer, question, "me"))
    assert (long["state"], len(long["scene"]["tokens"])) == ("working", 512)
    assert long["scene"]["truncated"]
    assert len(json.dumps(long)) < 200_000
    explainer.leave("me")
    finish(explainer.desk)


def test_other_marks_are_what_the_model_reads(explainer, session):
    piece = session.model(MODEL).tokenizer.id("spain")
    marks = [*MARKS, {"position": 4, "case": "random", "piece": piece}]
    tokens = ask(explainer, marks=marks)["scene"]["tokens"]
    assert (tokens[4]["text"], tokens[4]["read"], tokens[4]["changed"]) == ("France", "spain", True)


def test_captum_that_is_missing_is_told(explainer, monkeypatch):
    monkeypatch.setattr(why_service, "installed", lambda: False)
    assert ask(explainer, marks=MARKS)["state"] == "missing"


def test_a_failure_inside_is_told_without_its_text(explainer, monkeypatch):
    def fail(*_):
        raise RuntimeError("a secret path")

    monkeypatch.setattr(why, "attribute", fail)
    found = ask(explainer, marks=MARKS, word="rome")
    assert found["error"] == why_service.BROKEN


# --- jobs -----------------------------------------------------------------------------------------


def finish(desk):
    limit = time.monotonic() + 20
    while desk.busy():
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_giving_up_really_stops_the_work(explainer, session):
    """A long explanation ends within a chunk, and its passes with it."""
    question = {"rev": 1, "text": "word " * 500, "model": MODEL, "marks": MARKS, "steps": 300}
    passes = []
    run = TargetFunction.__call__

    def counted(self, vectors):
        passes.append(vectors.shape[0])
        return run(self, vectors)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TargetFunction, "__call__", counted)
        found = asyncio.run(tab.show(explainer, question, "me"))
        assert found["state"] == "working"
        assert 0 <= found["share"] < 1
        explainer.leave("me")
        finish(explainer.desk)
        count = len(passes)
        assert count < 200
        time.sleep(0.2)
        assert len(passes) == count


def test_clicks_of_others_are_answered_while_it_computes(explainer, session):
    question = {"rev": 1, "text": "word " * 500, "model": MODEL, "marks": MARKS, "steps": 290}

    async def both():
        assert (await tab.show(explainer, question, "slow"))["state"] == "working"
        begun = time.monotonic()
        await session.fill(Ask(text=TEXT + " now", model=MODEL, marks=(Mark(position=6),)))
        assert explainer.desk.busy()
        return time.monotonic() - begun

    assert asyncio.run(both()) < 5  # a whole explanation takes longer; speed is measured elsewhere
    explainer.leave("slow")
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
