"""What an opened model is called, where that is told, and which models and files are none."""

import asyncio
import errno
import os
import re
from pathlib import Path

import pytest
import torch

import core_models as cm
from app.page.open_model import tell
from app.runs.forms import form as run_form
from app.serving import session as serving
from app.serving.ask import Ask
from app.serving.shelf import Shelf
from core_models import InputError
from core_models.hub import files as hub_files
from tests import stand_in_hub
from tests.app.opening import NAME, opened
from tests.core.foreign_models import saved
from tests.core.tiny_models import new, tiny


def test_a_newer_commit_that_was_fetched_is_what_answers(
    there, folder, tmp_path, open_with, monkeypatch
):
    there.add(NAME, folder)
    session = open_with()
    name = opened(session, NAME)
    first = session.model(name)
    assert opened(session, NAME) == name
    assert session.model(name) is first
    new(tiny("bert-mini"), seed=7).save(tmp_path / "newer")
    there.add(NAME, tmp_path / "newer")
    monkeypatch.setattr(stand_in_hub, "COMMIT", "d" * 40)
    assert session.opened.look(NAME).missing > 0
    assert opened(session, NAME) == name
    weights = [m.encoder.embeddings.pieces.weight for m in (session.model(name), first)]
    assert not torch.equal(*weights)
    assert [key for _, key in session.choices()].count(name) == 1


def test_a_copy_stands_in_for_a_silent_hub_and_says_so_not_for_a_refusal(
    there, folder, open_with, monkeypatch
):
    there.add(NAME, folder)
    session = open_with()
    opened(session, NAME)
    kept = "this is what was fetched from it last"
    assert kept not in str(tell(session.opened.look(NAME)))
    del there.repositories[NAME]
    with pytest.raises(InputError, match="has no model"):
        session.opened.look(NAME)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert kept in str(tell(session.opened.look(NAME)))


def test_no_message_says_where_the_cache_lies(there, folder, tmp_path, open_with, monkeypatch):
    there.add(NAME, folder)
    session = open_with(mode="list", ids=(NAME,))
    name = opened(session, NAME)
    place = session.opened.model_path(name)
    weights = (place / "model.safetensors").resolve()
    whole = weights.read_bytes()
    told = []

    def refused(ask, *values) -> None:
        with pytest.raises(InputError) as caught:
            ask(*values)
        told.append(str(caught.value))

    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    weights.write_bytes(whole[:100])
    refused(session.opened.look, NAME)
    session._of_others = Shelf(session._load_packed, 0, session.opened.weigh)
    refused(session.model, name)
    weights.unlink()
    refused(session.card, name)
    monkeypatch.setenv("HF_ENDPOINT", there.address)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(hub_files, "_stream", full)
    refused(opened, session, NAME)
    assert "The disk is full" in told[-1]
    assert len(told) == 4
    assert str(tmp_path) not in str(told)


@pytest.mark.parametrize("large", [False, True])
def test_a_model_is_called_by_its_name(there, tmp_path, open_with, monkeypatch, large):
    """Its folder is called like a commit in the hub's cache, and “model” in every run."""
    monkeypatch.setattr(serving.gpu, "large", lambda model: large)  # then a packed copy answers
    monkeypatch.setattr(serving, "packed", lambda model: model.clone())
    new(tiny("bert-mini"), heads=["next_sentence"]).save(tmp_path / "pairs")
    there.add(NAME, tmp_path / "pairs")
    session = open_with()
    name = opened(session, NAME)
    with pytest.raises(InputError, match=f"^hub/{NAME} has no head that predicts pieces"):
        asyncio.run(session.fill(Ask(text="[MASK]", model=name)))
    own = opened(session, str(tmp_path / "pairs"))
    with pytest.raises(InputError, match=f"^{own} has no head that predicts pieces"):
        asyncio.run(session.fill(Ask(text="[MASK]", model=own)))


def test_what_is_trained_is_of_a_family_of_ours(tmp_path, open_with, make_runs):
    saved("mpnet", tmp_path / "theirs")
    session = open_with()
    runs = make_runs(others=session.opened)
    model = {"checkpoint": opened(session, str(tmp_path / "theirs"))}
    data = {"texts": ["primer/english-*.txt"], "max_length": 16}
    with pytest.raises(InputError, match="A mpnet is run by transformers: it cannot"):
        run_form.check(runs, session, {"model": model, "steps": 2, "data": data}, [], None)
    with pytest.raises(InputError, match="A mpnet is run by transformers: it cannot"):
        runs.create({"model": model, "task": {"set": "sentiment"}, "epochs": 1, "max_length": 16})
    assert runs.ids() == []


def test_a_file_that_cannot_be_read_is_told_as_that(there, folder, open_with, monkeypatch):
    there.add(NAME, folder)
    session = open_with()

    def refused(place: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(place / "vocab.txt"))

    monkeypatch.setattr(cm, "load", refused)
    told = f"The files of {NAME} cannot be read: Permission denied."
    with pytest.raises(InputError, match=f"^{re.escape(told)}$"):
        opened(session, NAME)


def test_a_file_may_have_a_name_of_another_encoding(folder, open_with):
    """As after unpacking an archive of another system; the path of a folder has none."""
    try:
        os.close(os.open(os.fsencode(folder) + b"/\xc4\xa3\xd0\xcd.model", os.O_CREAT))
    except OSError:
        pytest.skip("this file system has names in UTF-8 alone")
    assert opened(open_with(), str(folder))


def test_what_reads_no_texts_is_not_opened(there, folder, open_with):
    for path in folder.iterdir():
        if path.name not in ("config.json", "model.safetensors"):
            path.unlink()
    there.add(NAME, folder)
    session = open_with()
    for text in (NAME, str(folder)):
        with pytest.raises(InputError, match="has no tokenizer, so it reads no texts"):
            opened(session, text)
    assert session.opened.models() == []
    assert there.fetched(".safetensors") == []


def test_a_folder_wins_over_a_hub_id_of_the_same_spelling(
    there, folder, tmp_path, open_with, monkeypatch
):
    """As for ``cm.load``; a link to the hub's model is to that alone."""
    monkeypatch.chdir(tmp_path)
    new(tiny("bert-mini"), seed=7).save(tmp_path / NAME)
    there.add(NAME, folder)
    session = open_with()
    name = opened(session, NAME)
    assert name.startswith("folder/small-bert-")
    own = session.model(name).encoder.embeddings.pieces.weight
    assert torch.equal(own, cm.load(NAME).encoder.embeddings.pieces.weight)
    assert there.asked == []
    assert opened(session, f"hub/{NAME}") == f"hub/{NAME}"
    (tmp_path / NAME / "config.json").unlink()
    assert opened(session, NAME) == f"hub/{NAME}"


def test_no_folder_is_looked_at_where_none_may_be_opened(
    there, folder, tmp_path, open_with, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    new(tiny("bert-mini")).save(tmp_path / NAME)
    there.add(NAME, folder)
    assert open_with(mode="list", ids=(NAME,)).opened.look(NAME).name == f"hub/{NAME}"
    for mode, ids in (("list", ()), ("off", ())):
        with pytest.raises(InputError, match=r"models of its list only|switched off"):
            open_with(mode=mode, ids=ids).opened.look(NAME)
