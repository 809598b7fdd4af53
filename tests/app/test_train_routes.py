"""The routes of the Train tab and its endpoints: plain answers and friendly refusals."""

import asyncio
import http.client
import json
import threading
import urllib.error
import urllib.request
from dataclasses import replace

import pytest
import torch
from gradio_client import Client
from prometheus_client import REGISTRY
from starlette.requests import ClientDisconnect, Request

import core_models as cm
from app.labs.train import lab as train
from app.labs.train.pretraining import family_of
from app.runs import routes as run_routes
from app.runs.data import texts as run_texts
from app.runs.export import archive as run_export
from app.runs.forms import form as run_form
from app.runs.forms import preview as run_preview
from app.serving import metrics
from app.serving.settings import Settings
from core_models import InputError, prediction
from core_models.tokenizer import Tokenizer
from core_models.training.settings import ASSETS
from tests.app.test_run_export import finished, model

CONFIG = {
    "model": {"size": "bert-mini", "overrides": {"layers": 2, "width": 32, "heads": 2}},
    "tokenizer": {"vocabulary": 100},
    "data": {"texts": ["primer/english-life.txt"]},
    "steps": 10,
}
FORM = {"config": CONFIG | {"data": {"texts": ["primer/english-*.txt"]}}}
NAMED = CONFIG | {"data": {"texts": ["texts/mine.txt"]}}


@pytest.fixture
def ask(server):
    """``ask(path, values)``: status and answer of one request; POST where there are values."""

    def ask(path, values=None, *, body=None, headers=None):
        data = body if values is None else json.dumps(values).encode()
        given = {run_routes.HEADER: "train"} if headers is None else headers
        request = urllib.request.Request(f"{server}/train/{path}", data=data, headers=given)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            assert "Traceback" not in text
            return error.code, json.loads(text)

    return ask


@pytest.fixture
def check(runs, session):
    """``check(config, ...)``: what a form comes to, or why it comes to nothing."""

    def check(config, texts=(), source=None):
        try:
            source = run_form.still_there(runs, config, source)
            return run_form.weigh(runs, session, config, texts, source)
        except InputError as error:
            return {"error": str(error)}

    return check


def test_every_recipe_of_the_form_can_be_started(check):
    """They name only what a page may name, and the trainer accepts them."""
    for preset in run_form.presets():
        found = check(preset["config"])
        assert "error" not in found, (preset["name"], found)
        assert found["parameters"] > 0


def test_parameters_are_those_of_the_model_that_is_built(check):
    """BERT 2 x 32 over 100 pieces: tables, two layers, the masked-token head and nothing else."""
    config = FORM["config"] | {"objectives": {"masked_token": 1.0}}
    found = check(config)
    width, vocabulary, inner = 32, 100, 128
    tables = (vocabulary + 512 + 2) * width + 2 * width
    layer = 4 * (width * width + width) + 2 * width * inner + inner + width + 4 * width
    head = width * width + width + 2 * width + vocabulary
    assert found["parameters"] == tables + 2 * layer + head


def test_every_recipe_names_its_family_or_goes_on_learning():
    for path in sorted((ASSETS / "recipes").glob("*.json")):
        config = json.loads(path.read_text())
        if "size" in config.get("model", {}):
            assert family_of(config) == cm.size(config["model"]["size"]).family, path.name
    assert family_of({"model": {"size": "bert-mini"}}) == "bert"
    assert family_of({"model": {"checkpoint": "bert-mini"}}) is None


@pytest.mark.parametrize("family", [each["name"] for each in run_form.families()])
def test_every_family_of_the_form_can_be_built_at_the_smallest_shape(check, family):
    (found,) = (each for each in run_form.families() if each["name"] == family)
    model = {"size": found["size"], "overrides": {"layers": 2, "width": 128}}
    answer = check(FORM["config"] | {"model": model})
    assert "error" not in answer, answer
    assert (answer["family"], answer["layers"], answer["width"]) == (family, 2, 128)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("runs/none/start", {}),
        ("runs/none/stop", {}),
        ("runs/none/delete", {}),
        ("runs/none/explode", {}),
        ("runs/none/guess", {"step": 1, "text": "a [MASK] ."}),
        ("runs/none/guess", {"step": "1", "text": "a [MASK] ."}),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_message(ask, path, values):
    status, answer = ask(path, values)
    assert status == 200
    assert len(answer["error"]) > 10


@pytest.mark.parametrize(
    ("config", "more"),
    [
        (CONFIG, {}),
        (None, {}),
        (FORM["config"], {"texts": ["../x"]}),
        (NAMED, {"source": "../.."}),
        (NAMED, {"source": "none-at-all"}),
        (NAMED, {}),
        (FORM["config"] | {"model": {"checkpoint": "run/none"}}, {}),
        (FORM["config"] | {"steps": -1}, {}),
    ],
)
def test_a_form_that_cannot_be_used_is_refused_with_a_message(check, config, more):
    assert len(check(config, **more)["error"]) > 10


def test_a_form_outlives_the_run_that_it_was_copied_from(check, runs):
    """Whoever had copied a run, deleted it and chosen other texts was refused until a reload."""
    config = FORM["config"] | {"model": {"checkpoint": "bert-mini"}}
    run = runs.create(config)
    copied = runs.as_form(run)
    before = check(copied, source=run)
    runs.delete(run)
    assert check(copied, source=run) == before
    assert "error" not in before
    assert "deleted" in check(NAMED, source=run)["error"]


def test_gets_of_what_is_not_there(ask):
    assert "no run" in ask("runs/none")[1]["error"]
    assert "no run" in ask("runs/none/config")[1]["error"]
    assert "whole number" in ask("runs/none?offset=-1")[1]["error"]
    assert ask("runs/..%2f..%2fetc")[0] == 404


def test_a_change_needs_the_header_that_other_sites_cannot_send(ask):
    assert ask("runs/none/stop", {}, headers={})[0] == 403
    assert ask("texts?name=x", body=b"a\nb", headers={})[0] == 403


def test_texts_are_kept_or_refused(ask):
    status, text = ask("texts?name=my%20story.txt", body=b"One line.\nAnother.\n\nA third.\n")
    assert status == 200
    assert (text["name"], text["lines"], text["documents"]) == ("my-story.txt", 3, 2)
    assert ask("texts?name=x", body=b"\x00\x01\x02binary\nx")[1]["error"]


def test_braces_without_end_are_no_json(ask):
    found = ask("shown", body=b"[" * 200_000)
    assert found == (200, {"error": "The request is not JSON."})


def test_a_page_that_closes_while_it_sends_is_no_fault_of_ours(tmp_path, caplog):
    """Each wrote a traceback into the log, and counted as failed."""

    async def closed(_):
        raise ClientDisconnect

    request = Request({"type": "http", "method": "GET", "path": "/", "headers": []})
    assert asyncio.run(run_routes._guarded(tmp_path, closed)(request)).status_code == 499
    assert not caplog.records
    counted = {"answer": metrics.name_of(closed)}
    for outcome, times in (("left", 1), ("failed", None)):
        name = "cloze_answer_seconds_count"
        assert REGISTRY.get_sample_value(name, counted | {"outcome": outcome}) == times


@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("texts?name=x", run_texts.MOST_BYTES + 1, 413),
        ("runs/none/stop", (1 << 20) + 1, 413),
        ("texts/more", (1 << 20) + 1, 413),
    ],
)
def test_too_large_a_request_is_refused_before_it_is_read(server, path, length, status):
    connection = http.client.HTTPConnection(server.removeprefix("http://"), timeout=10)
    connection.putrequest("POST", f"/train/{path}")
    connection.putheader(run_routes.HEADER, "train")
    connection.putheader("content-length", str(length))
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()


def test_the_first_batch_hides_pieces_of_the_text_that_was_sent(runs):
    lines = [f"the cat number {n} sees the dog ." for n in range(40)]
    text = "\n".join("\n".join(lines[n : n + 4]) + "\n" for n in range(0, 40, 4))
    sent = runs.inbox.save("cats.txt", text.encode())
    config = CONFIG | {"data": {"texts": [], "max_length": 24, "duplicates": 1}}
    config |= {"objectives": {"masked_token": 1.0}}
    found = run_preview.first_batch(runs, config, [sent.id], None)
    row = found["rows"][0]
    assert {"cat", "sees", "[MASK]"} & set(row["pieces"])
    hidden = [label for each in found["rows"] for label in each["labels"] if label]
    assert hidden


def test_endpoints_for_scripts(server):
    client = Client(server, verbose=False)
    assert isinstance(client.predict(api_name="/runs"), list)
    with pytest.raises(Exception, match="no run"):
        client.predict("none", api_name="/run")


def test_only_models_of_the_list_can_be_opened(session):
    choices, name = train.choose(session, "bert-mini")
    assert name == "bert-mini"
    assert name in [known for _, known in choices]
    for wrong in ("/etc", "run/../x", "run/none", "run/none/step-1", "", None, 3):
        with pytest.raises(InputError):
            train.choose(session, wrong)


def test_runs_are_compared_by_all_their_settings(ask, runs):
    """What one left out and the other spelled out as it is by default does not differ."""
    plain = runs.create(FORM["config"])
    spelled = runs.create(FORM["config"] | {"seed": 1, "masking": {"rate": 0.15}, "batch_size": 32})
    other = runs.create(FORM["config"] | {"seed": 2})
    raw = ask(f"runs/{plain}/config")[1]
    assert "seed" not in raw
    full = [ask(f"runs/{run}/config?full=1")[1] for run in (plain, spelled, other)]
    assert full[0] == full[1]
    assert full[0]["objectives"] == {"masked_token": 1.0, "next_sentence": 1.0}
    assert full[0]["masking"]["rate"] == 0.15
    assert full[0]["data"]["format"] == "next_sentence"
    assert {k for k in full[0] if full[0][k] != full[2][k]} == {"seed"}
    task = runs.create({"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}})
    found = ask(f"runs/{task}/config?full=1")[1]
    assert (found["epochs"], found["model"]["checkpoint"]) == (5, "bert-mini")
    for run in (plain, spelled, other, task):
        runs.delete(run)


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"steps": 10**12}, "10000000"),
        ({"steps": 10_000_001}, "10000000"),
        ({"steps": 10**6, "batch_size": 65_536, "data": {"max_length": 4096}}, "1e+13"),
    ],
)
def test_absurd_sizes_are_refused_with_what_is_allowed(check, change, allowed):
    change = change | {"data": FORM["config"]["data"] | change.get("data", {})}
    found = check(FORM["config"] | change)
    assert allowed in found["error"]
    assert "error" not in check(FORM["config"] | {"steps": 10_000_000})


def test_a_smaller_limit_of_texts_is_told_and_kept(ask, runs, monkeypatch):
    monkeypatch.setattr(runs, "limits", replace(runs.limits, upload=1 << 20))
    assert "larger than 1 MB" in ask("texts?name=x", body=b"a\n" * (1 << 19) + b"b")[1]["error"]
    assert "error" not in ask("texts?name=x", body=b"one line\nanother\n")[1]


def test_settings_of_the_server(tmp_path):
    found = Settings.from_environment(
        {"CLOZE_RUNS": str(tmp_path), "CLOZE_TRAIN_SLOTS": "3", "CLOZE_TRAIN": "off"}
    )
    assert (found.runs, found.slots, found.training) == (tmp_path, 3, False)
    assert Settings.from_environment({}).training
    assert Settings.from_environment({}).limits.upload == run_texts.MOST_BYTES
    assert Settings.from_environment({"CLOZE_TRAIN_UPLOAD_MB": "3"}).limits.upload == 3 << 20
    for wrong in (
        {"CLOZE_TRAIN": "maybe"},
        {"CLOZE_TRAIN_SLOTS": "0"},
        {"CLOZE_TRAIN_UPLOAD_MB": "0"},
        {"CLOZE_TRAIN_UPLOAD_MB": "21"},
    ):
        with pytest.raises(InputError):
            Settings.from_environment(wrong)


def test_a_snapshot_of_a_detector_judges_every_piece(ask, runs):
    """ELECTRA-like models fill no gaps: the slider shows what they take for false."""
    model = _detector()
    run = runs.create(FORM["config"])
    runs.folder(run).save(2, model.save, kind="snapshots")
    _, found = ask(f"runs/{run}/guess", {"step": 2, "text": "a cat sees a dog ."})
    assert [each["text"] for each in found["verdicts"]] == ["a", "cat", "sees", "a", "dog", "."]
    judged = prediction.detect(model, "a cat sees a dog .").verdicts
    wanted = [verdict.probability for verdict in judged if not verdict.special]
    assert [each["probability"] for each in found["verdicts"]] == pytest.approx(wanted, abs=1e-6)
    runs.delete(run)


def _detector():
    words = ["a cat sees a dog ."] * 20
    tokenizer = Tokenizer.train(words, vocabulary=120)
    size = cm.size("electra-small-discriminator")
    size = size.with_vocabulary(tokenizer.vocabulary, pad_id=tokenizer.pad_id)
    return cm.Model.new(size, tokenizer, generator=torch.Generator().manual_seed(3)).eval()


def fetch(server, path):
    """Status, headers and body of a GET."""
    try:
        with urllib.request.urlopen(f"{server}/train/{path}", timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def test_the_route_sends_a_file_with_its_size_and_name(server, runs):
    run = finished(runs, model())
    status, headers, body = fetch(server, f"runs/{run}/model.zip")
    assert status == 200
    assert headers["content-type"] == "application/zip"
    assert int(headers["content-length"]) == len(body)
    assert 'filename="My-run-trs-bien.zip"' in headers["content-disposition"]
    assert "filename*=UTF-8''My-run-tr%C3%A8s-bien.zip" in headers["content-disposition"]
    for path, words in (
        ("runs/none/model.zip", "no run"),
        (f"runs/{run}/model.zip?step=3", "no snapshot"),
        (f"runs/{run}/model.zip?step=x", "whole number"),
    ):
        status, _, body = fetch(server, path)
        assert status == 404
        assert words in json.loads(body)["error"]
    runs.delete(run)


def test_the_page_answers_while_a_model_is_packed(server, runs, monkeypatch):
    run = finished(runs, model())
    began, go_on = threading.Event(), threading.Event()
    real = run_export._write

    def slowly(*arguments):
        began.set()
        assert go_on.wait(20)
        real(*arguments)

    monkeypatch.setattr(run_export, "_write", slowly)
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(fetch(server, f"runs/{run}/model.zip")[0])
    )
    thread.start()
    assert began.wait(20)
    assert fetch(server, f"runs/{run}")[0] == 200
    assert not answers
    go_on.set()
    thread.join(20)
    assert answers == [200]
    runs.delete(run)
