"""Models of the hub and of folders behind the page: who may open which, and what they answer."""

import json
import re
import shutil
import threading
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

import core_models as cm
from app.serving.ask import Ask, Mark
from app.serving.opened import library
from app.serving.opened.library import Opened
from app.serving.opened.policy import Policy, machine_memory
from app.serving.opened.suggestions import SUGGESTIONS, choices
from app.serving.settings import Settings
from core_models import InputError
from core_models.training import host
from tests import stand_in_hub
from tests.app.opening import NAME, opened
from tests.app.test_session import together
from tests.core.foreign_models import saved
from tests.core.tiny_models import new, tiny

TEXT = "red fox sees small dog"
FAMILIES = (
    "bert-base-uncased",
    "roberta-base",
    "albert-base",
    "spanbert-base-cased",
    "xlnet-base-cased",
    "electra-small-discriminator",
    "electra-small-generator",
    "chinese-macbert-base",
    "deberta-base",
    "deberta-v2-xlarge",
    "deberta-v3-small",
    "modernbert-base",
)


def test_the_environment_says_who_may():
    def policy(**environment) -> Policy:
        return Settings.from_environment(environment).opening

    assert policy() == Policy(mode="any", memory=machine_memory() // 3)
    assert policy(CLOZE_HOST="localhost").mode == "any"
    assert policy(GRADIO_SERVER_NAME="0.0.0.0").mode == "list"
    assert policy(CLOZE_HOSTS="school.example.org").mode == "list"
    assert policy(CLOZE_HOST="0.0.0.0", CLOZE_OPEN="any").mode == "any"
    assert policy(CLOZE_OPEN="off").opens is False
    named = policy(CLOZE_MODELS=f"{NAME}:/some/folder:relative", CLOZE_OPEN="list")
    assert named.ids == (NAME,)
    assert policy(CLOZE_MODEL_PARAMETERS="7", CLOZE_MODEL_MEMORY="3") == Policy(
        parameters=7, memory=3 << 20
    )
    assert "hf_secret" not in repr(policy(HF_TOKEN="hf_secret"))
    assert policy(HF_TOKEN=" hf_secret\n").token == "hf_secret"  # as it was pasted into a Space
    assert policy(HF_TOKEN="\n").token is None
    with pytest.raises(InputError, match="CLOZE_OPEN is 'some'; it must be any, list or off"):
        policy(CLOZE_OPEN="some")
    with pytest.raises(InputError, match="CLOZE_MODEL_MEMORY is '0'"):
        policy(CLOZE_MODEL_MEMORY="0")


def test_opened_models_take_a_part_of_the_containers_memory(tmp_path, monkeypatch):
    for name, content in (("max", 3 << 30), ("current", 1 << 30), ("stat", "inactive_file 0")):
        (tmp_path / f"memory.{name}").write_text(str(content))
    monkeypatch.setattr(host, "CGROUPS", tmp_path)
    assert Policy().memory == 1 << 30


def test_what_is_suggested_has_the_size_that_is_told():
    for each in SUGGESTIONS:
        assert round(cm.count(each.size).pretraining / 1e6, 1) == each.millions, each.name


def test_suggestions_begin_with_what_is_here(there, folder, open_with):
    there.add("albert/albert-base-v2", folder)
    session = open_with()
    before = choices(session.opened)
    assert ("albert/albert-base-v2 · ALBERT · 11.8 M · 47 MB", "albert/albert-base-v2") in before
    opened(session, "albert/albert-base-v2")
    title, name = choices(session.opened)[0]
    assert (title[-1], name) == ("✓", "albert/albert-base-v2")
    listed = Opened(Policy(mode="list", ids=(NAME,)))
    assert choices(listed) == [(NAME, NAME)]


@pytest.mark.parametrize("size", FAMILIES)
def test_every_family_opens_and_answers_as_its_folder_does(there, tmp_path, open_with, size):
    new(tiny(size)).save(tmp_path / "model")
    there.add(NAME, tmp_path / "model")
    session = open_with()
    offer = session.opened.look(NAME)
    assert offer.missing == offer.size > 0
    name = opened(session, NAME)
    assert name == f"hub/{NAME}"
    model = cm.load(tmp_path / "model")
    assert offer.counted
    assert offer.parameters >= sum(p.numel() for p in model.parameters())
    assert name in [found for _, found in session.choices()]
    assert session.card(name)["family"] == model.config.family
    assert [t.piece for t in session.sentence(TEXT, name).tokens]
    if session.card(name)["fills"]:
        (found,) = together(session.fill(Ask(text=TEXT, model=name, marks=(Mark(position=2),))))
        assert len(found.predictions[0].candidates) == 5


@pytest.mark.parametrize("kind", ["mpnet", "esm"])
def test_what_only_transformers_knows_opens_too(there, tmp_path, open_with, kind):
    saved(kind, tmp_path / "model")
    there.add(NAME, tmp_path / "model")
    session = open_with()
    name = opened(session, NAME)
    assert session.card(name)["family"] == kind
    ask = Ask(text="the red fox sees a [MASK] dog", model=name)
    filled, looks = together(session.fill(ask), session.attention(ask))
    assert len(filled.predictions[0].candidates) == 5
    assert looks.probabilities.shape[0] == 3


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_what_is_no_encoder_is_refused_before_its_weights_come(there, folder, open_with, kind):
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    there.add(NAME, folder)
    with pytest.raises(InputError, match=kind):
        opened(open_with(), NAME)
    assert there.fetched(".safetensors") == []


def test_a_folder_opens_where_one_visitor_is_alone(folder, open_with):
    session = open_with()
    name = opened(session, str(folder))
    assert re.fullmatch(r"folder/bert-[0-9a-f]{8}", name)
    assert ("bert · gaps, next sentence", name) in session.choices()
    assert str(folder.parent) not in str(session.choices())
    first = session.model(name)
    new(tiny("bert-mini"), seed=7).save(folder)
    again = opened(session, str(folder))
    assert again != name
    assert session.model(again) is not first
    for mode in ("list", "off"):
        with pytest.raises(InputError):
            open_with(mode=mode, ids=(NAME,)).open(str(folder), "me")


@pytest.mark.parametrize(
    ("place", "title", "told"),
    [
        ("evening/model", "evening/model", "evening-model"),
        ("a <b> & c/it", "it", "it"),
        ("x/<i>A b.v2", "<i>A b.v2", "i-A-b.v2"),
        ("x/模型 一", "模型 一", "模型-一"),
        ("x/---", "---", "model"),
    ],
)
def test_a_folder_has_a_name_that_can_be_read(folder, open_with, tmp_path, place, title, told):
    """In every lab and in links; without markup, and without where it lies."""
    shutil.copytree(folder, tmp_path / place)
    session = open_with()
    name = opened(session, str(tmp_path / place))
    assert re.fullmatch(rf"folder/{told}-[0-9a-f]{{8}}", name)
    assert any(shown.startswith(f"{title} ·") for shown, key in session.choices() if key == name)


def test_only_what_may_be_opened_is(there, folder, open_with):
    there.add(NAME, folder)
    with pytest.raises(InputError, match="models of its list only: other/model"):
        open_with(mode="list", ids=("other/model",)).open(NAME, "me")
    with pytest.raises(InputError, match="switched off"):
        open_with(mode="off").open(NAME, "me")
    assert opened(open_with(mode="list", ids=(NAME,)), NAME)
    session = open_with()
    for name in (f"hub/{NAME}", "hub/../../etc", "folder/0", "folder/../x"):
        with pytest.raises(InputError):
            session.model(name)
    for text in ("", "../x", "/nowhere", "a/b/c", "x\0y", None, 7, ["x"], "~nobody/x"):
        with pytest.raises(InputError):
            session.open(text, "me")


def test_a_model_that_is_too_large_is_refused_before_it_is_fetched(there, folder, open_with):
    there.add(NAME, folder)
    with pytest.raises(InputError, match="up to 100 "):
        open_with(parameters=100).open(NAME, "me")
    with pytest.raises(InputError, match="MB of memory"):
        open_with(memory=1).open(NAME, "me")
    with pytest.raises(InputError, match="MB of memory"):
        open_with(memory=1).open(str(folder), "me")
    assert there.fetched(".safetensors") == []


def test_a_list_that_lies_about_its_parameters_helps_nothing(there, folder, open_with, monkeypatch):
    there.add(NAME, folder)
    session = open_with()
    look = session.opened.look
    monkeypatch.setattr(session.opened, "look", lambda text: replace(look(text), parameters=1))
    session.opened.policy = Policy(parameters=1000)
    monkeypatch.setattr(library.hub, "look", lying(library.hub.look))
    with pytest.raises(InputError, match="up to 1,000 "):
        opened(session, NAME)
    assert session.opened.models() == []


def lying(look):
    return lambda name, **more: replace(look(name, **more), parameters=1)


def test_a_full_disk_is_told_before(there, folder, open_with, monkeypatch):
    there.add(NAME, folder)
    usage = namedtuple("usage", "total used free")(1, 1, 1 << 20)
    monkeypatch.setattr(library.shutil, "disk_usage", lambda place: usage)
    with pytest.raises(InputError, match="MB more on the disk"):
        open_with().open(NAME, "me")


def test_one_model_is_fetched_at_a_time_and_shared(there, folder, open_with):
    held = threading.Event()
    there.add(NAME, folder, held=held)
    there.add("somebody/other", folder)
    session = open_with(mode="list", ids=(NAME, "somebody/other"))
    job = session.open(NAME, "me")
    assert session.open(NAME, "you") is job
    with pytest.raises(InputError, match="only one model at a time"):
        session.open("somebody/other", "you")
    session.opened.cancel("you")
    assert not job.cancelled.is_set()
    held.set()
    assert job.done.wait(60)
    assert job.problem is None
    assert opened(session, "somebody/other")


def half_of_the_weights(job, folder):
    """Wait until they are here, where the others are held."""
    size = (folder / "model.safetensors").stat().st_size
    while not job.received >= job.offer.size - size + size // 2:
        assert not job.done.wait(0.01)


def test_what_is_cancelled_is_kept_and_goes_on(there, folder, open_with):
    held = threading.Event()
    there.add(NAME, folder, held=held)
    session = open_with()
    job = session.open(NAME, "me")
    half_of_the_weights(job, folder)
    session.opened.cancel("me")
    held.set()
    assert job.done.wait(60)
    assert "was cancelled; what is here is kept" in job.problem
    assert session.opened.look(NAME).missing < job.offer.size
    assert session.opened.models() == []
    assert opened(session, NAME)
    assert there.fetched(".safetensors") == [None]


def test_who_asks_for_what_another_has_cancelled_does_not_wait_for_it(there, folder, open_with):
    there.add(NAME, folder, held=(held := threading.Event()))
    session = open_with(mode="list", ids=(NAME,))
    job = session.open(NAME, "me")
    half_of_the_weights(job, folder)
    session.opened.cancel("me")
    with pytest.raises(InputError, match="just being fetched"):
        session.open(NAME, "you")
    held.set()
    assert job.done.wait(60)
    assert opened(session, NAME, "you")


def test_the_longest_unused_model_is_put_out_and_comes_back(there, folder, tmp_path, open_with):
    new(tiny("bert-mini"), seed=2).save(tmp_path / "second")
    there.add(NAME, folder)
    there.add("somebody/other", tmp_path / "second")
    size = library.hub.look(NAME).parameters
    session = open_with(memory=6 * size)
    first = opened(session, NAME)
    model = session.model(first)
    assert session.model(first) is model
    opened(session, "somebody/other")
    ask = Ask(text=TEXT, model=first, marks=(Mark(position=2),))
    again = session.model(first)
    assert again is not model
    (found,) = together(session.fill(ask))
    assert found.predictions


def test_damaged_files_are_sentences(there, folder, open_with):
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    session = open_with()

    def refused(told: str) -> None:
        name = f"somebody/model-{len(there.repositories)}"
        there.add(name, folder, counted=False)
        with pytest.raises(InputError, match=told) as caught:
            opened(session, name)
        assert "models--" not in str(caught.value)
        assert stand_in_hub.COMMIT not in str(caught.value)

    weights.write_bytes((10 << 30).to_bytes(8, "little") + whole[8:])
    refused("cut off or not a safetensors file")
    header = {"x": {"dtype": "F32", "shape": [2621440, 1000], "data_offsets": [0, 10485760000]}}
    text = json.dumps(header).encode()
    weights.write_bytes(len(text).to_bytes(8, "little") + text)
    refused("cut off or not a safetensors file|parameters; this server")
    weights.write_bytes(whole)
    (folder / "tokenizer.json").unlink()
    for name in ("vocab.txt", "vocab.json", "spm.model"):
        (folder / name).unlink(missing_ok=True)
    refused("No tokenizer")


REFUSED = {
    "pickle": "can run code and is refused",
    "code": "names code of its own",
    "quantized": "quantized weights are not read",
    "shape": "config.json asks for",
    "architecture": "lacks .* tensors|which a roberta model does not have",
    "python tokenizer": "No tokenizer|cannot read the tokenizer",
    "far id": "allowed is 0 to",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_is_a_sentence_of_the_job(there, folder, open_with, what):
    file = folder / "config.json"
    config = json.loads(file.read_text("utf-8"))
    changes = {
        "code": {"auto_map": {"AutoModel": "own.Model"}},
        "quantized": {"quantization_config": {"bits": 4}, "model_type": "mpnet"},
        "shape": {"intermediate_size": config["intermediate_size"] * 2},
        "architecture": {"model_type": "roberta", "cloze_family": "roberta"},
    }
    file.write_text(json.dumps(config | changes.get(what, {})), "utf-8")
    tokenizer = folder / "tokenizer.json"
    if what == "pickle":
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    if what == "python tokenizer":
        for path in (tokenizer, folder / "vocab.txt"):
            path.unlink(missing_ok=True)
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "OwnTokenizer"}')
    if what == "far id":
        parsed = json.loads(tokenizer.read_text("utf-8"))
        parsed["model"]["vocab"]["far"] = 10**9
        tokenizer.write_text(json.dumps(parsed), "utf-8")
    there.add(NAME, folder)
    session = open_with()
    with pytest.raises(InputError, match=REFUSED[what]) as caught:
        opened(session, NAME)
    assert str(folder) not in str(caught.value)
    assert "models--" not in str(caught.value)
    assert session.opened.models() == []


def test_a_token_opens_gated_models_and_is_never_told(there, folder, open_with, caplog):
    there.add(NAME, folder, status=401, error="GatedRepo", token="hf_secret")
    with pytest.raises(InputError, match="gated"):
        open_with().open(NAME, "me")
    session = open_with(token="hf_secret")
    name = opened(session, NAME)
    told = json.dumps([session.card(name), session.choices()], default=str) + caplog.text
    assert "hf_secret" not in told
    with pytest.raises(InputError) as caught:
        session.open("somebody/else", "me")
    assert "hf_secret" not in str(caught.value)


def test_other_models_answer_while_one_is_loaded(folder, open_with, monkeypatch):
    session = open_with()
    begun, go = threading.Event(), threading.Event()
    load = cm.load

    def slow(place):
        if Path(place) == folder.resolve():
            begun.set()
            assert go.wait(60)
        return load(place)

    monkeypatch.setattr(cm, "load", slow)
    job = session.open(str(folder), "me")
    assert begun.wait(60)
    shipped = session.models()[0].name
    assert session.model(shipped).name == shipped
    assert not job.done.is_set()
    go.set()
    assert job.done.wait(60)
    assert job.problem is None
