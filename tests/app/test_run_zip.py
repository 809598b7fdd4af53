"""Which model a zip holds, its card, its names, and what goes wrong while it is packed."""

import asyncio
import json
import shutil

import pytest
import torch
from safetensors.torch import load_file
from starlette.requests import ClientDisconnect

import core_models as cm
from app.runs.export import archive as run_export
from app.runs.export import card as run_card
from app.runs.reports.reports import Reports
from core_models import InputError
from core_models.checkpoints import files
from core_models.training.race_folder import RaceFolder
from tests.app.test_run_export import (
    CONFIG,
    assert_same_states,
    finished,
    model,
    opened,
    unpacked,
)


@pytest.fixture
def runs(make_runs):
    """A folder for each test, in which nothing starts."""
    return make_runs()


def test_a_finished_run_a_stopped_one_and_a_snapshot(runs, tmp_path):
    first, second, third = (model(seed=seed) for seed in (1, 2, 3))
    run = runs.create(CONFIG)
    folder, reports = runs.folder(run), Reports(runs)
    assert reports.live(run)["export"] is None
    with pytest.raises(InputError, match="has not saved a model yet"):
        run_export.pack(runs, run)
    folder.save(8, third.save, kind="snapshots")
    for step, made in ((10, first), (20, second)):
        folder.save(step, lambda path, made=made: made.save(path / "model"))
    told = reports.live(run)["export"]
    packed, (top,) = unpacked(runs, run, tmp_path / "stopped")
    assert packed.name == "My-run-très-bien-step-20.zip"
    assert top == "My-run-très-bien-step-20"
    assert told["step"] == 20
    assert packed.bytes - 20_000 < told["bytes"] < packed.bytes
    assert_weights(tmp_path / "stopped" / top, second)
    packed, (top,) = unpacked(runs, run, tmp_path / "snapshot", step=8)
    assert packed.name.endswith("-step-8.zip")
    assert_weights(tmp_path / "snapshot" / top, third)
    with pytest.raises(InputError, match="no snapshot"):
        run_export.pack(runs, run, 9)
    folder.save_model(first.save)
    folder.write_status({"state": "finished", "step": 40, "steps": 40})
    packed, (top,) = unpacked(runs, run, tmp_path / "finished")
    assert packed.name == "My-run-très-bien.zip"
    assert_weights(tmp_path / "finished" / top, first)
    assert reports.live(run)["export"]["step"] == 40


def assert_weights(folder, made):
    assert cm.load(folder).state_dict().keys() == made.state_dict().keys()
    for key, tensor in cm.load(folder).state_dict().items():
        assert torch.equal(tensor, made.state_dict()[key]), key


def test_a_detector_comes_with_its_generator(runs, tmp_path):
    made = model("electra-small-discriminator")
    fills = model("electra-small-discriminator", heads=["masked_token"], seed=2)
    losses = {"masked_token": 1.0, "replaced_token": 50.0}
    run = finished(runs, made, generator=fills, name="el", status={"losses": losses})
    folder = runs.folder(run)
    held_out = {"masked_token_loss": 3.25, "replaced_token_loss": 0.125}
    folder.write_evaluation({"steps": 40, "held_out": held_out})
    _, tops = unpacked(runs, run, tmp_path / "zip")
    assert tops == ["el", "generator"]
    assert opened(tmp_path / "zip" / "el")[0] == "AutoModelForPreTraining"
    auto, theirs, _, info = opened(tmp_path / "zip" / "generator")
    assert (auto, info) == ("AutoModelForMaskedLM", {})
    assert_same_states(fills, theirs)
    cards = [(tmp_path / "zip" / top / "README.md").read_text() for top in tops]
    assert "0.1250" in cards[0]
    assert "3.2500" not in cards[0]
    assert "3.2500" in cards[1]
    assert "# el: generator" in cards[1]
    assert "`generator`" in cards[0]


def test_weights_in_several_files_become_one(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SHARD_BYTES", 2_000)
    made = model()
    run = finished(runs, made)
    parts = list(runs.folder(run).model_path.glob("*.safetensors"))
    assert len(parts) > 3
    _, (top,) = unpacked(runs, run, tmp_path / "zip")
    folder = tmp_path / "zip" / top
    assert [path.name for path in folder.glob("*.safetensors*")] == ["model.safetensors"]
    whole = load_file(folder / "model.safetensors")
    assert whole.keys() == {name for part in parts for name in load_file(part)}
    assert opened(folder)[3] == {}
    assert_weights(folder, made)


@pytest.mark.parametrize("lost", ["first", "all", "index"])
def test_a_model_that_lacks_a_part_is_not_packed(runs, monkeypatch, lost):
    """What would be left of it opens, with fewer tensors."""
    monkeypatch.setattr(files, "SHARD_BYTES", 2_000)
    run = finished(runs, model())
    folder = runs.folder(run).model_path
    parts = sorted(folder.glob("*.safetensors"))
    gone = {"first": parts[:1], "all": parts, "index": [folder / "model.safetensors.index.json"]}
    for path in gone[lost]:
        path.unlink()
    with pytest.raises(InputError, match="of this model is damaged"):
        run_export.pack(runs, run)


def test_the_card_tells_the_run_and_nothing_of_this_machine(runs, tmp_path):
    start = finished(runs, model(), model={"checkpoint": "bert-mini"}, name="start")
    secret = "The cat sees the dog.\nThe dog hears the bird.\n\nA bird sees.\nA cat sleeps.\n"
    text = runs.inbox.save("stories.txt", secret.encode())
    run = runs.create(
        CONFIG
        | {"model": {"checkpoint": f"run/{start}"}, "data": {"texts": ["primer/english-*.txt"]}},
        texts=[text.id],
    )
    shutil.copytree(runs.root / start / "model", runs.root / run / "model")
    for name in ("status.json", "metrics.jsonl", "evaluation.json"):
        shutil.copy(runs.root / start / name, runs.root / run / name)
    _, (top,) = unpacked(runs, run, tmp_path / "zip")
    folder = tmp_path / "zip" / top
    card, recipe = (folder / "README.md").read_text(), (folder / "recipe.json").read_text()
    everything = card + recipe
    assert str(runs.root) not in everything
    assert str(tmp_path) not in everything
    assert "sees the dog" not in everything
    for wanted in (
        "# My run / très bien",
        "To see \\| whether it works",
        "fill hidden pieces of a text, and to tell whether the second text followed",
        "`primer/english-*.txt`",
        "`texts/stories.txt`",
        "60 documents, 5,000 pieces, a vocabulary of 100",
        "| masked token loss | 3.5000 |",
        "| knowing only how frequent each piece is | 4.2500 |",
        "| tokens read | 900 |",
        "2 CPU threads",
        f"python -m core_models.training ./{top}/recipe.json --run runs/{run}",
        "No licence is given here",
        "shipped model `bert-mini`, whose licence is apache-2.0",
        "Primer, Atlas) are CC0",
        f'cm.load("./{top}")',
        f"`run/{start}`",
    ):
        assert wanted in card, wanted
    assert json.loads(recipe)["model"]["checkpoint"] == f"run/{start}"


def test_paths_of_the_command_line_stay_here():
    recipe = {
        "name": "/a name",
        "model": {"checkpoint": "/data/me/runs/first/model"},
        "data": {"texts": ["/data/me/book.txt", "primer/*.txt", "C:\\books\\b.txt", "~/c.txt"]},
    }
    found = run_card.portable(recipe)
    assert found["name"] == "/a name"
    assert found["model"]["checkpoint"] == "first"
    assert found["data"]["texts"] == ["book.txt", "primer/*.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "run-1"),
        ("../../etc/passwd", "etc-passwd"),
        ("con", "run-1"),
        ("Generator", "run-1"),
        ("a" * 200, "a" * 60),
        ("读书", "读书"),
        ('x" ; rm\r\n', "x-rm"),
        ("...", "run-1"),
    ],
)
def test_names_are_harmless(name, expected):
    assert run_export.stem(name, "run-1") == expected


def test_a_race_has_no_model_of_its_own(runs):
    RaceFolder.create(runs.root / "race-1", {"entrants": []})
    with pytest.raises(InputError, match="race has several models"):
        run_export.pack(runs, "race-1")


def test_a_checkpoint_that_goes_while_it_is_packed(runs, monkeypatch):
    run = runs.create(CONFIG)
    folder = runs.folder(run)
    folder.save(10, lambda path: model().save(path / "model"))
    real, seen = run_export._write, []

    def write(file, runs, folder, found, name):
        seen.append(found.step)
        if len(seen) == 1:  # the training goes on meanwhile
            folder.save(20, lambda path: model(seed=2).save(path / "model"))
            folder.prune(1)
        real(file, runs, folder, found, name)

    monkeypatch.setattr(run_export, "_write", write)
    packed = run_export.pack(runs, run)
    assert (seen, packed.name) == ([10, 20], "My-run-très-bien-step-20.zip")
    packed.file.close()


@pytest.mark.parametrize(("number", "message"), [(28, "no room"), (2, "replaced by a newer")])
def test_what_stops_a_packing_is_told_and_leaves_nothing(runs, monkeypatch, number, message):
    run = finished(runs, model())
    made = []
    real = run_export.tempfile.TemporaryFile

    def remember(**options):
        made.append(real(**options))
        return made[-1]

    def fail(*_):
        raise OSError(number, "no")

    monkeypatch.setattr(run_export.tempfile, "TemporaryFile", remember)
    monkeypatch.setattr(run_export, "_add_folder", fail)
    with pytest.raises(InputError, match=message):
        run_export.pack(runs, run)
    assert made
    assert all(file.closed for file in made)


def test_a_download_that_is_broken_off_closes_its_file(runs):
    packed = run_export.pack(runs, finished(runs, model()))

    async def give_up() -> None:
        async def receive():
            await asyncio.sleep(0)
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.body":
                raise OSError("gone")

        scope = {"type": "http", "method": "GET", "asgi": {"spec_version": "2.4"}}
        with pytest.raises(ClientDisconnect):
            await run_export.Download(packed)(scope, receive, send)

    asyncio.run(give_up())
    assert packed.file.closed


@pytest.mark.parametrize("version", ["2.3", "2.4"])
def test_a_download_that_nobody_takes_closes_its_file(runs, monkeypatch, version):
    packed = run_export.pack(runs, finished(runs, model()))
    monkeypatch.setattr(run_export, "STALLED", 0.01)
    sent = []

    async def stall() -> None:
        async def send(message):
            sent.append(message["type"])
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        async def receive():
            await asyncio.Event().wait()

        scope = {"type": "http", "method": "GET", "asgi": {"spec_version": version}}
        await run_export.Download(packed)(scope, receive, send)

    asyncio.run(stall())
    assert sent == ["http.response.start", "http.response.body"]
    assert packed.file.closed
