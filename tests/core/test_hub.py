"""Models from the hub: what is fetched, what is refused, and how a cut is mended."""

import errno
import json
import shutil
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from huggingface_hub import close_session, constants

import core_models as cm
from core_models.hub import fetch as hub
from core_models.hub import files as hub_files
from tests.stand_in_hub import COMMIT, Hub

NAME = "somebody/small-bert"
WEIGHTS = ".safetensors"


def test_a_listing_tells_sizes_before_anything_is_fetched(there: Hub, folder: Path) -> None:
    there.add(NAME, folder, claimed={"pytorch_model.bin": 9, "onnx/model.safetensors": 9})
    found = hub.look(NAME)
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert {file.name: file.size for file in found.files} == sizes
    assert found.files[0].name == "config.json"
    assert found.files[-1].name == "model.safetensors"
    assert found.size == found.missing == sum(sizes.values())
    assert found.parameters == sum(p.numel() for p in cm.load(folder).parameters())
    assert not any("/resolve/" in path for _, path, _ in there.asked)


def test_a_model_is_fetched_loaded_and_then_here(there: Hub, folder: Path) -> None:
    there.add(NAME, folder)
    told: list[int] = []
    found = hub.fetch(NAME, report=told.append)
    assert told == sorted(told)
    assert told[-1] == hub.look(NAME).size
    assert hub.look(NAME).missing == 0
    assert cm.load(NAME).name == NAME
    assert hub.local(NAME) == found
    assert hub.fetched() == [NAME]


def test_what_breaks_off_goes_on_where_it_stopped(there: Hub, folder: Path) -> None:
    there.add(NAME, folder, cuts=1)
    half = (folder / "model.safetensors").stat().st_size // 2
    assert cm.load(hub.fetch(NAME)).config.family == "bert"
    assert there.fetched(WEIGHTS) == [None, f"bytes={half}-"]


def test_what_was_cancelled_goes_on_in_a_later_call(there: Hub, folder: Path) -> None:
    class EnoughError(Exception):
        pass

    def report(received: int) -> None:
        if received > listing.size - weights:
            raise EnoughError

    there.add(NAME, folder, held=threading.Event())
    listing = hub.look(NAME)
    weights = (folder / "model.safetensors").stat().st_size
    with pytest.raises(EnoughError):
        hub.fetch(NAME, listing=listing, report=report)
    assert hub.local(NAME) is None
    assert listing.missing == weights - weights // 2
    there.repositories[NAME].held = None
    assert cm.load(hub.fetch(NAME)).config.family == "bert"
    assert there.fetched(WEIGHTS) == [None, f"bytes={weights // 2}-"]


def test_a_damaged_file_is_fetched_once_more(there: Hub, folder: Path) -> None:
    there.add(NAME, folder)
    (file,) = [file for file in hub.look(NAME).files if file.name.endswith(WEIGHTS)]
    part = Path(constants.HF_HUB_CACHE) / f"models--somebody--small-bert/blobs/{file.sha256}"
    part.parent.mkdir(parents=True)
    part.with_suffix(".incomplete").write_bytes(bytes(100))
    with pytest.raises(cm.InputError, match=r"model\.safetensors of .* came damaged"):
        hub.fetch(NAME)
    assert cm.load(hub.fetch(NAME)).config.family == "bert"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"status": 404, "error": "RepoNotFound"}, "The hub has no model"),
        ({"status": 401}, "The hub has no model"),
        ({"status": 401, "error": "GatedRepo"}, "is gated: accept its terms"),
        ({"status": 403}, "is gated"),
        ({"status": 500}, "which answered 500"),
        ({"claimed": {"tokenizer.json": 1 << 30}}, "tokenizer.json .* 1,073,741,824 bytes"),
        ({"claimed": {"model.safetensors": 100}}, "larger than the 100 bytes|not the file"),
    ],
)
def test_refusals_are_sentences(there: Hub, folder: Path, wrong: dict, told: str) -> None:
    there.add(NAME, folder, **wrong)
    with pytest.raises(cm.InputError, match=told) as caught:
        hub.fetch(NAME)
    assert there.address not in str(caught.value)


def test_without_a_network_it_is_said(there: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(cm.InputError, match=r"could not be fetched from the hub .*a shipped model"):
        hub.fetch(NAME)


@pytest.mark.parametrize("why", ["network", "offline", 500, 503, 429])
def test_without_the_hub_what_is_here_is_opened_and_that_is_said(
    there: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch, why: str | int
) -> None:
    repository = there.add(NAME, folder)
    whole = hub.fetch(NAME)
    if why == "network":
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    elif why == "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    else:
        repository.status = int(why)
    told = rf"The hub does not answer \(.+\), so '{NAME}' is opened as .* at commit c0ffee0\."
    with pytest.warns(UserWarning, match=told) as caught:
        assert hub.fetch(NAME) == whole
    assert there.address not in str(caught[0].message)
    with pytest.warns(UserWarning, match=told) as caught:
        assert cm.load(NAME).name == NAME
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"status": 404, "error": "RepoNotFound"}, "The hub has no model"),
        ({"status": 404, "error": "RevisionNotFound"}, "has no such commit"),
        ({"status": 401}, "The hub has no model"),
        ({"status": 403}, "is gated"),
        ({"status": 400}, "which answered 400"),
        ({"claimed": {"tokenizer.json": 1 << 30}}, "1,073,741,824 bytes"),
    ],
)
def test_what_the_hub_refuses_is_no_older_copy(
    there: Hub, folder: Path, wrong: dict, told: str
) -> None:
    there.add(NAME, folder)
    hub.fetch(NAME)
    there.add(NAME, folder, **wrong)
    with pytest.raises(
        cm.InputError, match=f"{told}.* fetched before .* HF_HUB_OFFLINE=1 opens it"
    ):
        cm.load(NAME)
    there.add(NAME, folder)
    assert cm.load(NAME).name == NAME


def test_what_is_current_is_opened_without_a_word(there: Hub, folder: Path) -> None:
    there.add(NAME, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hub.fetch(NAME) == hub.fetch(NAME)


def test_a_disk_that_is_full_is_a_sentence(
    there: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    there.add(NAME, folder)
    monkeypatch.setattr(hub_files, "_stream", full)
    with pytest.raises(cm.InputError, match=f"The disk is full: '{NAME}' has no place"):
        hub.fetch(NAME)
    assert hub.local(NAME) is None


def test_a_cache_that_cannot_be_written_is_no_lack_of_a_network(
    there: Hub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.add(NAME, folder)
    (tmp_path / "file").touch()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(cm.InputError, match=r"cannot be kept in .*cache .*HF_HUB_CACHE\.$"):
        hub.fetch(NAME)


def test_pickles_alone_are_refused_with_the_way_out(there: Hub, folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    there.add(NAME, folder)
    with pytest.raises(cm.InputError, match=r"pytorch_model\.bin alone, .*safetensors/convert"):
        hub.fetch(NAME)
    assert not there.fetched("pytorch_model.bin")


def test_the_hubs_own_conversion_stands_in_for_pickles(
    there: Hub, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "pull")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    there.add(NAME, folder, conversion=tmp_path / "pull")
    assert cm.load(NAME).config.family == "bert"


def test_code_of_a_repository_is_refused_before_its_weights_come(there: Hub, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "m.M"}}))
    there.add(NAME, folder)
    with pytest.raises(cm.InputError, match="names code of its own"):
        hub.fetch(NAME)
    assert not there.fetched(WEIGHTS)


def test_names_with_paths_in_them_are_left_where_they_are(there: Hub, folder: Path) -> None:
    there.add(NAME, folder, claimed={"../../evil.safetensors": 5, "vocab/../../x": 5})
    assert all("/" not in file.name for file in hub.look(NAME).files)
    assert cm.load(hub.fetch(NAME)).config.family == "bert"


def test_a_token_goes_to_the_hub_alone(there: Hub, folder: Path) -> None:
    there.add(NAME, folder, status=401, error="GatedRepo", token="hf_secret")
    with pytest.raises(cm.InputError, match="gated"):
        cm.load(NAME)
    assert there.tokens == set()
    assert hub.fetch(NAME, token="hf_secret").name
    assert there.tokens == {"hf_secret"}
    shutil.rmtree(hub.storage(NAME))
    there.tokens.clear()
    assert cm.load(NAME, token="hf_secret").name == NAME
    assert there.tokens == {"hf_secret"}
    with pytest.raises(cm.InputError) as caught:
        hub.fetch("somebody/else", token="hf_secret")
    assert "hf_secret" not in str(caught.value)


def test_several_who_fetch_one_model_at_once_all_have_it(there: Hub, folder: Path) -> None:
    """Processes of a class, or of torchrun, share a cache."""
    there.add(NAME, folder, held=(held := threading.Event()))
    with ThreadPoolExecutor(3) as several:
        asked = [several.submit(hub.fetch, NAME) for _ in range(3)]
        while there.fetched(WEIGHTS) == []:
            assert not any(each.done() for each in asked)
        held.set()
        assert {each.result() for each in asked} == {hub.local(NAME)}
    assert there.fetched(WEIGHTS) == [None]
    assert cm.load(NAME).config.family == "bert"


def test_who_waits_for_another_can_cancel(there: Hub, folder: Path) -> None:
    class EnoughError(Exception):
        pass

    def report(received: int) -> None:
        if there.fetched(WEIGHTS):
            raise EnoughError

    there.add(NAME, folder, held=(held := threading.Event()))
    with ThreadPoolExecutor(2) as several:
        first = several.submit(hub.fetch, NAME)
        while there.fetched(WEIGHTS) == []:
            assert not first.done()
        with pytest.raises(EnoughError):
            hub.fetch(NAME, report=report)
        assert not first.done()
        held.set()
        assert first.result() == hub.local(NAME)


@pytest.mark.parametrize(
    "told", [b"<html>Log in to the network of this school", b"{}", b"[]", b"null", b"\xff"]
)
def test_what_is_no_hub_is_said(there: Hub, folder: Path, told: bytes) -> None:
    there.add(NAME, folder)
    whole = hub.fetch(NAME)
    there.instead = told
    with pytest.raises(cm.InputError, match="What answers in the hub's place is none"):
        hub.fetch("somebody/else")
    with pytest.warns(UserWarning, match="The hub does not answer"):
        assert hub.fetch(NAME) == whole


@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:1", "socks://127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_said(
    there: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    there.add(NAME, folder)
    whole = hub.fetch(NAME)
    for name in ("ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    close_session()
    try:
        with pytest.raises(cm.InputError, match="or the proxy") as caught:
            hub.fetch("somebody/else")
        with pytest.warns(UserWarning, match="The hub does not answer") as told:
            assert hub.fetch(NAME) == whole
    finally:
        monkeypatch.undo()
        close_session()
    assert "secret" not in str(caught.value)
    assert "secret" not in str(told[0].message)


def test_the_address_of_a_hub_may_end_in_a_slash(
    there: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.add(NAME, folder)
    monkeypatch.setenv("HF_ENDPOINT", f"{there.address}/")
    assert cm.load(NAME).config.family == "bert"


def test_a_cache_that_can_only_be_read_is_enough(
    there: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.add(NAME, folder)
    whole = hub.fetch(NAME)

    def refused(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "write_text", refused)
    assert hub.fetch(NAME) == whole


def test_a_reference_is_replaced_whole(
    there: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was fetched before is found without a network, also where the disk is full now."""
    there.add(NAME, folder)
    whole = hub.fetch(NAME)
    write = Path.write_text

    def full(path: Path, *_: object, **__: object) -> None:
        write(path, "")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", full)
    assert hub.fetch(NAME) == whole
    assert hub.local(NAME) == whole
    assert hub.fetched() == [NAME]


def test_a_file_that_always_ends_too_soon_is_given_up(
    there: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.add(NAME, folder, short=True)
    with pytest.raises(cm.InputError, match=r"model\.safetensors ends before the"):
        hub.fetch(NAME)
    assert len(there.fetched(WEIGHTS)) == 1 + hub_files.TRIES


def test_a_reference_that_is_damaged_is_none(there: Hub, folder: Path) -> None:
    there.add(NAME, folder)
    whole = hub.fetch(NAME)
    (whole.parents[1] / "refs" / "main").write_bytes(b"\xff\xfe")
    assert hub.fetched() == []
    assert hub.fetch(NAME) == whole


OLDER = "0de" + "0" * 37


def test_a_name_may_say_which_commit_is_meant(
    there: Hub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever repeats a run gets the weights that it read, whatever was published since."""
    other = tmp_path / "older"
    cm.Model.new(cm.load(folder).config, cm.load(folder).tokenizer, heads=["masked_token"]).save(
        other
    )
    there.add(NAME, folder, older={OLDER: other})
    pinned = f"{NAME}@{OLDER}"
    assert hub.look(pinned).commit == OLDER
    whole = hub.fetch(pinned)
    assert (whole.name, hub.pinned(str(whole))) == (OLDER, pinned)
    assert hub.local(NAME) is None, "no newest commit was asked for"
    newest = hub.fetch(NAME)
    assert newest.name == COMMIT
    assert (hub.local(pinned), hub.local(NAME)) == (whole, newest)
    weights = [
        cm.load(each).state_dict()["encoder.embeddings.pieces.weight"]
        for each in (other, pinned, f"{NAME}@{COMMIT}", NAME)
    ]
    assert weights[0].equal(weights[1])
    assert not weights[1].equal(weights[3])
    assert weights[2].equal(weights[3])
    # What a commit holds never changes: the hub is not asked for one that is here.
    there.asked.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert cm.load(pinned).name == pinned
    assert there.asked == []


def test_a_commit_of_which_transformers_has_the_weights_alone_is_made_whole(
    there: Hub, folder: Path
) -> None:
    there.add(NAME, folder)
    pinned = f"{NAME}@{COMMIT}"
    for file in hub.fetch(pinned).glob("*token*"):
        file.unlink()
    (hub.fetch(pinned) / "vocab.txt").unlink()
    assert cm.load(pinned).tokenizer.fingerprint == cm.load(folder).tokenizer.fingerprint


def test_a_commit_that_is_not_there_is_no_model_that_is_not(there: Hub, folder: Path) -> None:
    there.add(NAME, folder, status=404, error="RevisionNotFound")
    with pytest.raises(cm.InputError, match=f"'{NAME}' has no such commit on the hub"):
        hub.fetch(f"{NAME}@{OLDER}")


@pytest.mark.parametrize("wrong", [f"{NAME}@", f"{NAME}@main", f"{NAME}@{OLDER[:7]}", f"x@{OLDER}"])
def test_a_commit_is_all_of_its_digits(wrong: str) -> None:
    assert hub.local(wrong) is None
    with pytest.raises(cm.InputError, match="is not a hub id"):
        hub.fetch(wrong)
    with pytest.raises(cm.InputError):
        cm.load(wrong)


@pytest.mark.parametrize("path", ["/a/snapshots/" + OLDER, f"/models--a--b/snapshots/{OLDER}/x"])
def test_another_folder_is_of_no_commit(path: str) -> None:
    assert hub.pinned(path) is None
