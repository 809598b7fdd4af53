"""What the Forge tab shows of a round: the row, tables, files, the score."""

import asyncio
import shutil
from xml.etree import ElementTree

import gradio as gr
import pytest
import torch

import core_models as cm
from app.labs.forge import lab as tab
from app.labs.forge import score as scores
from app.labs.forge import shown
from app.labs.mask import lab as mask
from app.runs.runs import Runs
from app.serving.opened.library import Opened
from app.serving.opened.policy import Policy
from app.serving.session import Session
from core_models import InputError, inspect
from tests.app import forge_rounds
from tests.app.forge_rounds import TEXT, ask, hide, question
from tests.app.opening import opened
from viz import verdicts

SVG = "{http://www.w3.org/2000/svg}"


def test_the_table_has_a_row_for_each_token(forge_session):
    game = ask(forge_session, marks=hide(2), fakes=[[6, "honey"]])
    rows = shown.numbers(game)["rows"]
    assert [row[4][0] for row in rows] == game["after"]
    assert [row[6][0] for row in rows] == game["mine"]["verdicts"]
    assert rows[2][3] == game["gaps"][0]["sample"]["display"]
    assert rows[6][5] == "honey"


def test_what_is_shown_of_a_round(forge_session):
    values = question(marks=hide(2), fakes=[[6, "honey"]])
    answers = asyncio.run(tab.show(forge_session, values))
    assert len(answers) == tab.SHOWN
    last, _, _, row, chart = answers[:5]
    game = ask(forge_session, marks=hide(2), fakes=[[6, "honey"]])
    assert [token["chance"] for token in row["tokens"]] == game["after"]
    assert row["by"] == {"sleuth": "en"}
    assert chart.layout.meta["rows"][0][0] == 2
    own, cleared, notes = answers[11:14]
    assert [token["kind"] for token in own["tokens"]].index("mine") == 6
    assert own["offered"] == 2
    assert notes["rows"][0][:2] == ["honey", "Paris"]
    assert cleared == gr.skip()
    # The visitor's words belong to the text that was answered last.
    after = asyncio.run(tab.show(forge_session, {**values, "last": {**last, "text": "Another ."}}))
    assert (after[12], after[13]) == ([], None)
    assert (
        asyncio.run(tab.show(forge_session, {**values, "sentence": None}))
        == [gr.skip()] * tab.SHOWN
    )


def test_gaps_show_what_was_drawn_and_what_stood_there(forge_session):
    game = ask(forge_session, marks=hide(2, 6))
    for gap, told in zip(game["gaps"], shown.gaps(game), strict=True):
        assert sum(each.drawn for each in told.choices) == 1
        (true,) = [each for each in told.choices if each.true]
        assert true.probability == pytest.approx(gap["original_probability"], rel=1e-4)
        assert told.drawn == gap["sample"]["display"]


def test_the_score_counts_what_the_visitor_did_and_each_once(forge_session):
    def scored(values, before):
        values = question(marks=hide(2, 6), **values, last=before, score=score)
        return tab.scored(values, asyncio.run(tab.play(forge_session, values)))

    score, text = scores.EMPTY, {"text": TEXT, "model": "sleuth"}
    first = {**text, "roll": 3, "fakes": []}
    assert scored({}, {}) == scored({}, first) == scores.EMPTY, "nothing was tried"
    score = scored({"roll": 4}, first)
    tried = score["generator"][0]
    assert 0 < tried <= 2
    assert score["human"] == [0, 0]
    assert scored({"roll": 4}, first) == score, "the same roll once more"
    score = scored({"fakes": [[4, "honey"]]}, first)
    assert (score["human"][0], score["generator"][0]) == (1, tried)
    assert scored({"fakes": [[4, "honey"]]}, first) == score
    stale = {**first, "text": "Another ."}
    assert scored({"roll": 9, "fakes": [[4, "bees"]]}, stale) == score


def test_words_stay_at_their_places_only_while_the_pieces_do(forge_models, tmp_path):
    """The visitor's words have positions, which are other words of another vocabulary."""
    shutil.copytree(forge_models, tmp_path / "models")
    letters = cm.Tokenizer.train(forge_rounds.LINES, vocabulary=100, kind="unigram")
    config = cm.size("electra-small-discriminator").with_vocabulary(letters.vocabulary)
    made = {"heads": ["replaced_token"], "generator": torch.Generator().manual_seed(5)}
    cm.Model.new(config, letters, **made).save(tmp_path / "models" / "speller")
    with forge_rounds.open_session(tmp_path / "models") as session:

        def show(judge, last):
            values = question(fakes=[[6, "honey"]], detective=judge, last=last)
            return asyncio.run(tab.show(session, values))

        last = show("sleuth", {})[0]
        found = {judge: show(judge, last) for judge in ("alone", "speller")}
        own, cleared, notes = found["alone"][11:14]
        assert (cleared, notes["rows"][0][:2]) == (gr.skip(), ["honey", "Paris"])
        assert own["cut"] == last["cut"]
        own, cleared, notes = found["speller"][11:14]
        assert (cleared, notes) == ([], None)
        assert own["cut"] != last["cut"], "nor does the word that was chosen stay chosen"
        assert "mine" not in [token["kind"] for token in own["tokens"]]


def test_a_score_that_has_not_changed_is_not_sent(forge_session):
    """It may have been put back while the answer was under way."""
    first = {"text": TEXT, "model": "sleuth", "roll": 3, "fakes": []}
    values = question(marks=hide(2, 6), last=first, score=scores.EMPTY)
    assert asyncio.run(tab.show(forge_session, values))[-2:] == [gr.skip()] * 2
    board, score = asyncio.run(tab.show(forge_session, {**values, "roll": 4}))[-2:]
    assert score["generator"][0] > 0
    assert board == scores.board(score)


@pytest.mark.parametrize("kept", [None, 3, {}, {"human": [1], "generator": [0, 0], "counted": []}])
def test_a_broken_score_begins_anew(kept):
    assert scores.read(kept) == scores.EMPTY


def test_the_svg_opens_and_holds_every_token(forge_session):
    values = {"text": "A <b> & 北京 \x07 capital", "marks": hide(2)}
    (svg,) = asyncio.run(tab.draw(forge_session, question(**values)))
    texts = [node.text for node in ElementTree.fromstring(svg).iter() if node.text]
    numbers = [text for text in texts if text.endswith(" %")]
    assert numbers == [f"{100 * chance:.0f} %" for chance in ask(forge_session, **values)["after"]]


def test_bars_are_as_tall_as_their_chance():
    tokens = [verdicts.Judged(text="a", chance=0.25), verdicts.Judged(text="b", chance=0.5)]
    drawn = ElementTree.fromstring(verdicts.verdicts_svg(tokens, title="t"))
    bars = [r for r in drawn.iter(f"{SVG}rect") if r.get("fill") in (verdicts.QUIET, verdicts.LOUD)]
    assert [float(bar.get("height")) / verdicts.TALL for bar in bars] == [0.25, 0.5]
    assert [bar.get("fill") for bar in bars] == [verdicts.QUIET, verdicts.LOUD]
    for bad in ([], [verdicts.Judged(text="a", chance=1.5)]):
        with pytest.raises(ValueError, match=r"nothing|within"):
            verdicts.verdicts_svg(bad, title="t")


def test_the_mask_tab_says_that_a_detective_fills_no_gaps(forge_session):
    asked = {"text": TEXT, "model": "sleuth", "marks": hide(2)}
    with pytest.raises(InputError, match="sleuth judges words and fills no gaps"):
        asyncio.run(mask.predict(forge_session, asked))


def test_the_picker_says_what_a_model_can_do(forge_session):
    titles = {name: title for title, name in forge_session.choices()}
    assert titles["sleuth"] == "sleuth · judges tokens"
    assert titles["sleuth-generator"] == "sleuth-generator · gaps"


def test_the_code_names_the_folder_of_a_run(forge_session):
    assert forge_session.loadable("bert-mini") == "bert-mini"
    assert forge_session.loadable("run/my-run") == "runs/my-run/model"


def test_the_code_names_where_the_model_of_a_run_lies_now(tmp_path):
    """Snapshots, runs that have not finished, and what a race has trained."""
    runs = Runs(tmp_path / "elsewhere", seconds=60)
    session, other = Session(library=runs), Session()
    for folder in ("one/snapshots/step-128", "one/checkpoints/step-200", "race/mlm/model"):
        (runs.root / folder).mkdir(parents=True)
    for kept in ("snapshots/step-128", "checkpoints/step-200"):
        (runs.root / "one" / kept / "manifest.json").write_text("{}")
    (runs.root / "one" / "config.json").write_text("{}")
    (runs.root / "race" / "experiment.json").write_text("{}")
    (runs.root / "race" / "race.json").write_text('{"table": [{"name": "mlm"}]}')
    try:
        named = {
            "run/one": "one/checkpoints/step-200/model",
            "run/one/step-128": "one/snapshots/step-128",
            "run/one/step-200": "one/checkpoints/step-200/model",
            "run/race/mlm": "race/mlm/model",
            "run/gone": "gone/model",
        }
        assert {name: session.loadable(name) for name in named} == {
            name: f"runs/{place}" for name, place in named.items()
        }
        (runs.root / "one" / "model").mkdir()
        assert session.loadable("run/one") == "runs/one/model"
        assert session.loadable("run/one/step-128") == "runs/one/snapshots/step-128"
        assert other.loadable("run/one/step-128") == "runs/one/step-128/model"  # it has no runs
    finally:
        session.close()
        other.close()
        runs.close()


def test_a_run_brings_its_own_generator(forge_models, tmp_path):
    class Library:
        root = tmp_path

        def models(self):
            return [("run/a", "a (run)"), ("run/b", "b (run)"), ("run/a/step-5", "a, step 5")]

        def model_path(self, name):
            part = name.removeprefix("run/")
            return tmp_path / ("a/checkpoints/step-5" if "step" in part else part) / "model"

    for name, source in (("a", "sleuth"), ("a/checkpoints/step-5", "sleuth")):
        shutil.copytree(forge_models / source, tmp_path / name / "model")
        shutil.copytree(forge_models / f"{source}-generator", tmp_path / name / "generator")
    shutil.copytree(forge_models / "alone", tmp_path / "b" / "model")
    with forge_rounds.open_session(forge_models, library=Library()) as session:
        answer = ask(session, model="run/a", marks=hide(2))
        assert answer["chosen"] == ("run/a", "a (run)", True)
        assert answer["after"] == ask(session, marks=hide(2))["after"]
        assert "cm.load('runs/a/generator')" in answer["code"]
        assert "run/b" not in [found.name for found in answer["detectives"]]
        code = ask(session, model="run/a/step-5", marks=hide(2))["code"]
        assert "cm.load('runs/a/checkpoints/step-5/model')" in code
        assert "cm.load('runs/a/checkpoints/step-5/generator')" in code


def test_an_opened_discriminator_judges_and_brings_its_generator(forge_models, tmp_path, there):
    shutil.copytree(forge_models / "sleuth", tmp_path / "a" / "model")
    shutil.copytree(forge_models / "sleuth-generator", tmp_path / "a" / "generator")
    there.add("somebody/alone", forge_models / "alone")
    there.add("somebody/filler", forge_models / "sleuth-generator")
    with forge_rounds.open_session(forge_models, opened=Opened(Policy(mode="any"))) as session:
        name = opened(session, str(tmp_path / "a" / "model"))
        alone, filler = opened(session, "somebody/alone"), opened(session, "somebody/filler")
        answer = ask(session, model=name, marks=hide(2))
        assert answer["chosen"] == (name, "a/model", True)
        assert answer["after"] == ask(session, marks=hide(2))["after"]
        found = {each.name: each.generator for each in answer["detectives"]}
        assert (found[alone], found["alone"]) == (False, False)
        assert filler not in found
        assert "cm.load('path/of/your/folder')" in answer["code"]
        assert "cm.load('path/of/your/generator')" in answer["code"]
        assert shown.who(answer, {}) == "a/model judges, generator forges."
        answer = ask(session, model=alone)
        assert answer["chosen"] == (alone, "somebody/alone", False)
        assert "cm.load('somebody/alone')" in answer["code"]
        shutil.rmtree(tmp_path / "a")
        left = [each.name for each in ask(session, model=alone)["detectives"]]
        assert alone in left


def test_a_generator_beside_an_opened_folder_may_be_no_larger_than_a_model(forge_models, tmp_path):
    shutil.copytree(forge_models / "sleuth", tmp_path / "model")
    shutil.copytree(forge_models / "sleuth-generator", tmp_path / "generator")
    size = inspect(tmp_path / "generator").parameters
    with forge_rounds.open_session(forge_models, opened=Opened(Policy(mode="any"))) as session:
        name = opened(session, str(tmp_path / "model"))
        session.opened.policy = Policy(mode="any", parameters=size - 1)
        with pytest.raises(InputError, match=rf"generator has {size:,} parameters; this server"):
            session.generator_of(name)
        session.opened.policy = Policy(mode="any", parameters=size)
        assert "masked_token" in session.generator_of(name).heads
