"""What the page shows of runs: sections that are new, of the run that is asked for."""

import json
import shutil
from pathlib import Path

import pytest

from app.runs import owner as run_owner
from app.runs.process import ROOT
from app.runs.queue import waits
from app.runs.reports.reports import Reports
from app.runs.reports.sections import Wish
from app.runs.reports.shown import Shown
from app.runs.reports.tried import tried
from app.serving.session import Session
from core_models import InputError
from core_models.training.folder import remember_process
from tests.app.held import finished_race, finished_runs
from tests.app.test_runs import CONFIG
from tests.app.test_train_held_out_browser import MASKED
from tests.core.tiny_models import new, tiny


@pytest.fixture
def make(runs):
    yield from finished_runs(runs)


@pytest.fixture
def ask(runs):
    """``ask(wish)``: what a browser that made no run gets."""
    shown = Shown(Reports(runs))
    return lambda wish, owner=None: shown.answer(wish, owner)


def test_a_page_gets_only_what_it_has_not(ask, make, runs):
    run = make("Once")
    first = ask({"run": run})
    assert first["parts"]["title"]["value"]["text"] == "Once"
    assert first["parts"]["facts"]["value"]["text"].startswith("finished · ")
    again = ask({"run": run, "seen": first["seen"]})
    assert again["parts"] == {}
    report = {"step": 60, "tokens": 60, "seconds": 2.0, "loss": 5.5, "masked_token_loss": 5.5}
    runs.folder(run).append_metrics(report)
    parts = ask({"run": run, "seen": first["seen"]})["parts"]
    assert parts["said"]["value"]["text"]
    assert "chart" in parts
    assert "config" not in parts
    # Another run has other values of the same components.
    other = make("Twice")
    assert ask({"run": other, "seen": first["seen"]})["parts"]["title"]["value"]["text"] == "Twice"


def test_nobody_reads_where_the_server_keeps_its_runs(make_runs):
    runs = make_runs()
    mine, owner = runs.root / "mine", "0" * 32
    mine.mkdir(parents=True)
    config = {"model": {"checkpoint": f"{runs.root}/other/model"}, "data": {"texts": ["/srv/a"]}}
    (mine / "config.json").write_text(json.dumps(config))
    run_owner.note(mine, owner)
    reason = f"{mine}/config.json: give steps. Nothing lies in {runs.root}."
    (mine / "status.json").write_text(json.dumps({"state": "failed", "reason": reason}))
    trace = f'File "{ROOT}/core_models/model.py", line 1\nFile "{Path.home()}/a.py", line 2'
    (mine / "log.txt").write_text(f"{trace}\nfailed: {reason} See /mnt{runs.root}/x\n")
    told = "mine/config.json: give steps. Nothing lies in runs."
    reports = Reports(runs)

    def shown(owner=None):
        return Shown(reports).answer({"run": "mine"}, owner)["parts"]

    parts = shown()
    assert parts["reason"]["value"]["text"] == told
    assert parts["log"]["value"].splitlines() == [
        'File "core_models/model.py", line 1',
        'File "~/a.py", line 2',
        f"failed: {told} See /mnt{runs.root}/x",
    ]
    assert parts["command"]["value"] == "python -m core_models.training mine/config.json"
    for each in (parts, reports.overview(), reports.live("mine")):
        assert str(runs.root) not in json.dumps(each).replace(f"/mnt{runs.root}", "")
    # What can be copied works, for whom the run belongs to.
    assert shown(owner)["command"]["value"] == f"python -m core_models.training {mine}/config.json"


@pytest.mark.parametrize(
    ("name", "content", "is_told"),
    [
        ("status.json", '{"state": "stopped", "step": [], "steps": 9, "data": 0.5}', True),
        ("status.json", "[" * 5000, False),
        ("metrics.jsonl", '{"step": 3, "loss": {}}\n' * 3, False),
        ("config.json", '{"model": 7, "entrants": 7}', True),
        ("config.json", '{"model": "bert"}', True),
        ("config.json", '{"data": "x"}', False),
    ],
)
def test_a_damaged_run_is_told_and_harms_no_other(ask, make, runs, name, content, is_told):
    whole, run = make("Whole"), make("Damaged")
    (runs.folder(run).path / name).write_text(content)
    listed = [each for _, each in ask({})["parts"]["list"]["choices"]]
    assert {whole, run} <= {*listed}
    assert ask({"run": whole})["parts"]["title"]["value"]["text"] == "Whole"
    if is_told:
        with pytest.raises(InputError, match=f"the run “{run}” are damaged"):
            ask({"run": run})
    else:  # some damage does not matter, but that a name is lost
        title = run if name == "config.json" else "Damaged"
        assert ask({"run": run})["parts"]["title"]["value"]["text"] == title


@pytest.mark.parametrize("name", ["metrics.jsonl", "status.json", "snapshots"])
def test_a_run_that_cannot_be_read_is_told_and_harms_no_other(ask, make, runs, monkeypatch, name):
    """Another user's, or of a broken disk: no run was listed, and none in the queue started."""
    whole, run = make("Whole"), make("Shut")
    path = runs.folder(run).path / name
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    path.symlink_to(name)  # it cannot be opened, by root neither
    listed = [each for _, each in ask({})["parts"]["list"]["choices"]]
    assert {whole, run} <= {*listed}
    assert ask({"run": whole})["parts"]["title"]["value"]["text"] == "Whole"
    with pytest.raises(InputError, match=f"the run “{run}” cannot be read: Too many levels"):
        ask({"run": run})
    assert runs.at_work() == []
    assert waits(Reports(runs), [whole]) == {whole: 0.0}
    runs.delete(whole)
    path.unlink()


def test_the_models_of_a_run_that_cannot_be_read_are_left_out(make_runs):
    """The list of models stands in the page itself, which was not to be had."""
    runs = make_runs()
    for name in ("whole", "shut"):
        (runs.root / name).mkdir(parents=True)
        (runs.root / name / "config.json").write_text("{}")
    (runs.root / "whole" / "model").mkdir()
    (runs.root / "shut" / "checkpoints").symlink_to("checkpoints")
    assert [known for known, _ in runs.models()] == ["run/whole"]


@pytest.mark.parametrize("anew", [True, False])
def test_reports_of_a_copy_that_was_put_back_are_read_anew(make_runs, anew):
    """A shorter file was taken for the beginning of the one before, a longer one for its end."""
    runs = make_runs()
    run = runs.create(CONFIG)
    path = runs.root / run / "metrics.jsonl"

    def written(*losses):
        if anew:
            path.rename(path.with_name("old"))
        lines = (json.dumps({"step": n, "loss": loss}) for n, loss in enumerate(losses, 1))
        path.write_text("".join(f"{line}\n" for line in lines))

    path.write_text("")
    reports = Reports(runs)
    written(9.0, 8.0, 7.0)
    first = reports.live(run)
    for losses in ((5.0, 4.0), (3.0, 2.0, 1.5, 1.0) if anew else (3.0,)):
        written(*losses)
        found = reports.live(run, first["offset"], first["generation"])
        assert [each["loss"] for each in found["records"]] == [*losses]
        first = found


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("race.json", '{"table": [{"name": "masked"}]}'),
        ("race.json", '{"table": [7, {"state": "finished"}], "state": "stopped"}'),
        ("race.json", '{"table": null}'),
        ("checkpoints", "a file"),
    ],
)
def test_a_damaged_run_leaves_the_models_of_others(make_runs, name, content):
    """The list of models of the whole page names them."""
    runs = make_runs()
    (runs.root / "whole" / "model").mkdir(parents=True)
    (runs.root / "whole" / "config.json").write_text("{}")
    race = runs.root / "race"
    race.mkdir()
    (race / ("experiment.json" if name == "race.json" else "config.json")).write_text("{}")
    (race / name).write_text(content)
    assert [known for known, _ in runs.models()] == ["run/whole"]
    with pytest.raises(InputError):
        runs.model_path("run/race/masked")


def test_a_damaged_model_is_named_and_not_where_it_lies(make_runs):
    runs = make_runs()
    run = runs.root / "mine"
    new(tiny("electra-small-discriminator")).save(run / "model")
    new(tiny("electra-small-generator")).save(run / "generator")
    (run / "config.json").write_text("{}")
    for part in ("model", "generator"):
        (run / part / "model.safetensors").write_bytes(b"damaged")
    session = Session(library=runs)
    try:
        asks = {session.model: "run/mine", session.generator_of: "run/mine/generator"}
        for ask, told in asks.items():
            with pytest.raises(InputError, match="cut off or not a safetensors") as caught:
                ask("run/mine")
            assert str(caught.value).startswith(f"{told}/model.safetensors")
            assert str(runs.root) not in str(caught.value)
    finally:
        session.close()


def test_a_run_that_is_gone_is_none(ask, make, runs):
    run, other = make("Gone"), make("There")
    assert ask({"run": run, "with": [other, "none", 3]})["others"] == [other]
    runs.delete(run)
    found = ask({"run": run})
    assert (found["run"], found["kind"]) == (None, None)
    assert set(found["parts"]) == {"list", "none", "new"}


def test_a_finished_fine_tuning_is_listed_with_what_its_model_reached(ask, runs):
    """The list had the last epoch's figure; the model has the weights of the best."""
    run = runs.create({"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}})
    folder = runs.folder(run)
    for step, value in ((1, 0.75), (2, 0.5)):
        report = {"step": step, "tokens": 8, "seconds": 1.0, "loss": 1.0}
        folder.append_metrics(report | {"validation_accuracy": value})
    facts = {"kind": "classify", "main": "accuracy", "dev": {"rows": 4}}
    status = {"main": "accuracy", "step": 2, "steps": 2, "task": facts | {"set": "sentiment"}}
    folder.write_status(status | {"state": "stopped"})
    reports = Reports(runs)
    assert reports.summary(run)["main"] == {"name": "accuracy", "value": 0.5}
    evaluation = {"main": "accuracy", "metrics": {"accuracy": 0.75}, "best_epoch": 1}
    evaluation |= {"confusion": [], "labels": {}, "worst": [], "best": []}
    (folder.path / "evaluation.json").write_text(json.dumps(evaluation))
    folder.write_status(status | {"state": "finished"})
    assert reports.summary(run)["main"] == {"name": "accuracy", "value": 0.75}
    # Rows to measure on may be rows to learn from, too: a table of one's own decides.
    told = ask({"run": run})["parts"]["summary"]["value"]["text"].replace("\N{NO-BREAK SPACE}", " ")
    assert told == "Accuracy 75.0 % on the rows to measure on (4), after epoch 1, its best."
    runs.delete(run)


@pytest.mark.parametrize(("step", "word"), [(39, "training"), (40, "measuring")])
def test_a_run_that_has_made_its_steps_measures(ask, make, runs, step, word):
    run = make("Nearly")
    status = {"state": "running", "step": step, "steps": 40, "process": remember_process()}
    runs.folder(run).write_status(status)
    found = ask({"run": run})
    assert found["parts"]["facts"]["value"]["text"].startswith(f"{word} · ")
    runs.folder(run).write_status({"state": "finished", "step": 40, "steps": 40})


def test_a_wish_may_be_anything(ask, make):
    run = make("Any")
    for wish in ({}, {"run": 3}, {"run": run, "with": 7}, {"run": run, "by": "x", "what": []}):
        assert "list" in ask(wish | {"seen": 5})["parts"]
    assert Wish.read({"run": "", "with": ["a", "a", None], "by": None}) == Wish(
        run=None, others=("a",)
    )


def test_buttons_are_of_who_may_press_them(ask, make, runs, monkeypatch):
    run = make("Mine")
    assert ask({"run": run})["parts"]["delete"]["visible"] is False
    monkeypatch.setattr(runs, "may_change", lambda run, token: token == "me")
    parts = ask({"run": run}, "me")["parts"]
    assert (parts["delete"]["visible"], parts["stop"]["visible"]) == (True, False)
    assert parts["resume"]["visible"] is False  # it has finished
    monkeypatch.setattr(runs, "enabled", False)
    parts = ask({"run": run}, "me")["parts"]
    assert not any(parts[name]["visible"] for name in ("delete", "again", "tune"))


def test_a_race_at_work_does_not_wait_for_its_first_report_when_it_is_there(ask, runs):
    for row, early in (({"step": 0}, True), ({"step": 10}, False)):
        rows = [{"name": "one", "state": "running"} | row, {"name": "two", "step": 0}]
        race = finished_race(runs, "At work", rows, state="running", process=remember_process())
        shown = ask({"run": race.path.name})["parts"]["early"]["value"]["text"]
        assert bool(shown) is early
        race.write_status(race.status() | {"state": "finished"})
        runs.delete(race.path.name)


def test_a_race_shows_whose_model_is_chosen(ask, runs):
    race = finished_race(runs, "Shown", [{"name": "one"}, {"name": "two", "state": "measuring"}])
    race.run("two").write_validation(MASKED)
    found = ask({"run": race.path.name, "entrant": "two"})["parts"]
    assert found["whose"]["value"] == "two"
    assert found["examples"]["value"]["step"] == MASKED["step"]
    rows = found["table"]["value"]["rows"]
    assert [row[:2] for row in rows] == [["one", "finished"], ["two", "measuring"]]
    assert rows[0][4] == [0.6, "60.0\xa0%"]
    # One that is not there gives way to the first.
    assert ask({"run": race.path.name, "entrant": "?"})["parts"]["whose"]["value"] == "one"
    runs.delete(race.path.name)


@pytest.mark.parametrize("known", [True, False])
def test_tags_are_named_in_the_text(known):
    entity = {"start": 0, "end": 4, "type": "PER", "probability": 0.9}
    found = {
        "kind": "tag",
        "text": "Anna saw",
        "entities": [entity],
        "entities_known": known,
        "words": [[0, 4], [5, 8]],
        "tags": ["B-PER", "O"],
    }
    marked = [(each["token"], each["class_or_confidence"]) for each in _marked(found)]
    if known:
        assert marked == [("Anna", "PER"), (" saw", None)]
    else:
        assert marked == [("Anna", "B-PER"), (" ", None), ("saw", "O")]
    none = tried(found | {"entities": [], "entities_known": True})
    assert none["found"]["value"]["text"] == "It finds no name here."
    assert none["marked"]["visible"] is False


def _marked(found):
    return tried(found)["marked"]["value"]


def test_an_answer_is_marked_where_it_stands_and_none_is_told():
    answer = {"text": "May", "start": 3, "end": 6, "probability": 0.75}
    found = {"kind": "answer", "text": "In May.", "answers": [answer], "answer": "May"}
    curve = {"places": [[0, 2], [3, 6]], "starts": [0.1, 0.9], "ends": [0.2, 0.8]}
    parts = tried(found | {"curve": curve})
    assert [each["token"] for each in parts["marked"]["value"]] == ["In ", "May", "."]
    assert parts["shares"]["value"]["confidences"] == [{"label": "May", "confidence": 0.75}]
    assert len(parts["where"]["value"]["data"]) == 2
    none = tried(found | {"answer": "", "curve": None, "none": 0.15})
    assert none["found"]["value"]["text"] == "It says that the text does not answer this (15.0 %)."
    assert none["where"] == {"value": None}


def test_an_answer_that_stands_twice_in_the_text_has_the_likelier_place():
    answers = [
        {"text": "Oslo", "start": 14, "end": 18, "probability": 0.45},
        {"text": "Ben", "start": 20, "end": 23, "probability": 0.2},
        {"text": "Oslo", "start": 35, "end": 39, "probability": 0.1},
    ]
    text = "Anna lives in Oslo. Ben also likes Oslo."
    found = {"kind": "answer", "text": text, "answers": answers, "answer": "Oslo", "curve": None}
    shares = tried(found)["shares"]["value"]
    assert shares["label"] == "Oslo"
    assert [each["confidence"] for each in shares["confidences"]] == [0.45, 0.2]


def test_a_finished_race_goes_on_with_what_failed_in_it(make_runs):
    runs = make_runs(slots=0, shared=True)
    folder = finished_race(runs, "Two", [{"name": "masked"}, {"name": "causal"}])
    run = folder.path.name

    def finish(**more):
        rows = folder.table()
        rows[1] |= more
        folder.write_status(folder.status() | {"table": rows})
        return Shown(Reports(runs)).answer({"run": run}, None)["parts"]["resume"]

    assert not finish()["visible"]
    with pytest.raises(InputError, match="has finished"):
        runs.start(run)
    offered = finish(state="failed", reason="The disk is full of it.")
    assert (offered["visible"], offered["value"]) == (True, {"told": ["Try again what failed"]})
    runs.start(run)
    assert (runs.state(run), runs.queue()) == ("queued", [run])
    assert [row["state"] for row in folder.table()] == ["finished", "waiting"]
    assert not any("reason" in row for row in folder.table())
    runs.stop(run)
    assert runs.state(run) == "stopped"


def test_a_curve_of_few_reports_is_not_called_good(ask, make, runs):
    run = make("Short")
    assert "Too few reports" in json.dumps(ask({"run": run})["parts"]["findings"])
    for step in range(70, 120, 10):
        report = {"step": step, "tokens": step, "seconds": 2.0, "loss": 5.5}
        runs.folder(run).append_metrics(report)
    assert "Nothing conspicuous" in json.dumps(ask({"run": run})["parts"]["findings"])
