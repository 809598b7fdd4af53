"""``push`` shows what it will send, asks, and sends only then; the hub is a stand-in."""

import io
import json
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub import CommitOperationAdd
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

from core_models.cli.main import main
from tests.core.tiny_models import new, tiny


class Hub:
    """Records what would be sent."""

    endpoint = "https://hub.test"
    there = False
    files = ()
    error: Exception | None = None

    def __init__(self):
        self.done = []

    def whoami(self):
        if self.error:
            raise self.error
        return {"name": "ada"}

    def repo_exists(self, name):
        return self.there

    def list_repo_files(self, name):
        return self.files

    def create_repo(self, name, *, private, exist_ok):
        self.done.append(("create", name, private))

    def create_commit(self, name, operations, *, commit_message):
        added = [o for o in operations if isinstance(o, CommitOperationAdd)]
        self.done.append(("commit", name, {o.path_in_repo for o in added}))
        removed = {o.path_in_repo for o in operations if o not in added}
        if removed:
            self.done.append(("removed", name, removed))


@pytest.fixture
def hub(monkeypatch):
    found = Hub()
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: found)
    return found


@pytest.fixture
def push(capsys, monkeypatch):
    def call(*arguments, answer=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        return main(["push", *map(str, arguments)]), *capsys.readouterr()

    return call


@pytest.fixture
def run_folder(tmp_path):
    """A finished run, with what must stay at home."""
    new(tiny("bert-base")).save(tmp_path / "model")
    (tmp_path / "status.json").write_text(json.dumps({"state": "finished"}))
    (tmp_path / "config.json").write_text('{"data": {"texts": ["texts/secret.txt"]}}')
    (tmp_path / "log.txt").write_text("secret")
    return tmp_path


def test_it_shows_and_sends_after_a_yes(hub, push, run_folder):
    code, out, err = push(run_folder, "ada/mine", answer="y\n")
    assert (code, err) == (0, "")
    created, (kind, name, files) = hub.done
    assert created == ("create", "ada/mine", True)
    assert (kind, name) == ("commit", "ada/mine")
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md"} <= files
    assert not {"log.txt", "status.json"} & files
    for file in files:
        assert file in out
    assert "hub.test/ada/mine (new, private)" in out
    assert "as ada" in out
    assert "secret" not in out


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "perhaps\n"])
def test_nothing_is_sent_without_a_yes(hub, push, run_folder, answer):
    code, out, _ = push(run_folder, "ada/mine", answer=answer)
    assert code == 1
    assert out.endswith("Nothing was sent.\n")
    assert hub.done == []


def test_a_repository_that_is_there_and_a_public_one(hub, push, run_folder):
    push(run_folder, "ada/mine", "--public", "--yes")
    assert hub.done[0] == ("create", "ada/mine", False)
    hub.there, hub.done = True, []
    _, out, _ = push(run_folder / "model", "ada/mine", "--yes")
    assert [kind for kind, *_ in hub.done] == ["commit"]
    assert "files of these names are replaced" in out


OLD = ("model.safetensors", "model-00001-of-00003.safetensors", "model.safetensors.index.json")


def test_weights_of_an_earlier_model_do_not_stay_beside_the_new_ones(
    hub, push, run_folder, monkeypatch
):
    """Readers would take them for the model: a single file goes before an index."""
    monkeypatch.setattr("core_models.checkpoints.files.SHARD_BYTES", 4_000)
    new(tiny("bert-base")).save(run_folder / "model")
    hub.there, hub.files = True, (*OLD, "notes.md", "onnx/model.safetensors", "pytorch_model.bin")
    code, out, _ = push(run_folder, "ada/mine", answer="y\n")
    sent = next(files for kind, _, files in hub.done if kind == "commit")
    assert code == 0
    assert "model.safetensors.index.json" in sent
    stale = {"model.safetensors", "model-00001-of-00003.safetensors"} - sent
    assert ("removed", "ada/mine", stale) in hub.done
    assert "removed there" in out
    assert all(name in out for name in stale)
    _, out, _ = push(run_folder, "ada/mine", "--json")
    assert set(json.loads(out)["removed"]) == stale


def test_a_place_that_is_no_hub_is_said(hub, push, run_folder):
    """What answers may be a page to log in to a network."""
    hub.error = json.JSONDecodeError("hf_secret", "<html>", 0)
    code, _, err = push(run_folder, "ada/mine", "--yes")
    assert code == 2
    assert "cannot be reached (JSONDecodeError)" in err


def test_a_place_that_answers_something_else_is_said(hub, push, run_folder, monkeypatch):
    monkeypatch.setattr(hub, "whoami", dict)
    code, _, err = push(run_folder, "ada/mine", "--yes")
    assert code == 2
    assert "cannot be reached (KeyError)" in err


def test_a_card_that_is_there_is_kept(hub, push, run_folder, monkeypatch):
    (run_folder / "model" / "README.md").write_text("mine")
    sent = {}

    def commit(name, operations, *, commit_message):
        sent.update({o.path_in_repo: o.path_or_fileobj for o in operations})

    monkeypatch.setattr(hub, "create_commit", commit)
    push(run_folder, "ada/mine", "--yes")
    assert str(sent["README.md"]).endswith("README.md")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LocalTokenNotFoundError("token"), "Nobody is logged in to the hub; run: hf auth login"),
        (
            HfHubHTTPError(
                "hf_secret", response=SimpleNamespace(status_code=403, headers={}, request=None)
            ),
            "The hub refused (403)",
        ),
        (ConnectionError("hf_secret"), "cannot be reached (ConnectionError)"),
    ],
)
def test_what_goes_wrong_at_the_hub(hub, push, run_folder, error, words):
    hub.error = error
    code, out, err = push(run_folder, "ada/mine", answer="y\n")
    assert code == 2
    assert out == ""
    assert hub.done == []
    assert "hf_secret" not in err
    assert words in err


def test_what_cannot_be_sent(hub, push, run_folder, tmp_path_factory):
    for state in ("running", "failed"):
        (run_folder / "status.json").write_text(json.dumps({"state": state}))
        assert "only a finished one is sent" in push(run_folder, "ada/mine", "--yes")[2]
    empty = tmp_path_factory.mktemp("empty")
    assert "neither a run folder nor a model folder" in push(empty, "ada/mine", "--yes")[2]
    for name in ("mine", "../mine", "a/b/c"):
        assert "no place on the hub" in push(run_folder, name, "--yes")[2]
    assert hub.done == []
