"""A file of the hub has the size that was listed, or it is refused."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import core_models as cm
from core_models.hub import fetch as hub
from core_models.hub import files as hub_files
from tests.stand_in_hub import Hub

NAME = "somebody/small-bert"
WEIGHTS = ".safetensors"


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("claimed", [10, 1 << 20])
def test_a_small_file_of_another_size_is_refused_before_it_comes(
    there: Hub, folder: Path, file: str, claimed: int
) -> None:
    """So the most that a file beside the weights may have holds for the file, not for the list."""
    there.add(NAME, folder, claimed={file: claimed})
    told = f"{file} of '{NAME}' is not the file that the hub has listed; look once more"
    for _ in range(2):
        with pytest.raises(cm.InputError, match=told):
            hub.fetch(NAME)
    assert there.fetched(f"/{file}") == there.fetched(WEIGHTS) == []
    there.repositories[NAME].claimed.clear()
    assert cm.load(hub.fetch(NAME)).config.family == "bert"


def test_a_small_file_is_measured_when_it_has_come(
    there: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub need not say beforehand how large a file is."""
    silent = SimpleNamespace(size=None, etag=None)
    monkeypatch.setattr(hub_files, "get_hf_file_metadata", lambda *args, **more: silent)
    there.add(NAME, folder, claimed={"config.json": 10})
    for _ in range(2):
        with pytest.raises(cm.InputError, match=r"config\.json of .* is not the file"):
            hub.fetch(NAME)
    assert there.fetched(WEIGHTS) == []


def test_what_lies_in_the_cache_with_another_size_is_fetched_anew(there: Hub, folder: Path) -> None:
    there.add(NAME, folder)
    place = hub.fetch(NAME)
    whole = (place / "config.json").read_bytes()
    (place / "config.json").resolve().write_bytes(whole[:-1])
    assert cm.load(hub.fetch(NAME)).config.family == "bert"
    assert (place / "config.json").read_bytes() == whole
    assert len(there.fetched("/config.json")) == 2
    assert len(there.fetched("/tokenizer.json")) == 1
