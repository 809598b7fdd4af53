"""Models in memory: what is written anew under the same path answers anew, and what one weighs."""

import asyncio
import gc
import os
import re
import shutil
import threading
import weakref

import pytest
import torch

import core_models as cm
from app.labs.meaning import lab as meaning
from app.labs.meaning.corpus import Corpus
from app.serving import gpu, shelf
from app.serving.ask import Ask, Mark
from app.serving.opened.policy import Policy
from app.serving.session import Session
from core_models import InputError
from core_models.prediction import fill
from tests.app.opening import opened
from tests.app.test_session import together
from tests.core.tiny_models import new, tiny
from tests.waiting import until

TEXT = "red fox sees small dog"
RUN = "run/mine"
MEANING = {
    "model": {"model": RUN},
    "word": "dog",
    "sentences": "red fox sees small dog\nsmall dog sees red fox",
    "layer": 1,
    "way": "raw",
    "example": None,
    "which": 0,
    "others": False,
}
PRIMER = ("red fox sees small dog", "small dog sees red fox", "red dog", "small fox sees red")


class Runs:
    """A run ``mine`` with its newest model and one snapshot, each under the same path for ever."""

    def __init__(self, root):
        self.root = root

    def models(self):
        return [(RUN, "mine (run)")]

    def model_path(self, name):
        place = self.root / ("step-4" if name == f"{RUN}/step-4" else "model")
        if not name.startswith(RUN) or not place.is_dir():
            raise InputError("There is no such run.")
        return place


def train(place, size="bert-mini", seed=0, **values):
    """A new model under a path, as a run leaves one that is made anew."""
    shutil.rmtree(place, ignore_errors=True)
    new(tiny(size), seed=seed, **values).save(place)


@pytest.fixture
def here(tmp_path):
    train(tmp_path / "model")
    train(tmp_path / "step-4")
    session = Session(library=Runs(tmp_path))
    yield session
    session.close()


@pytest.fixture
def corpus(here, tmp_path):
    """A primer of words that the tiny models know."""
    (tmp_path / "primer").mkdir()
    (tmp_path / "primer" / "english-1.txt").write_text("\n".join(PRIMER))
    return Corpus(here, tmp_path / "primer")


def candidates(result):
    return [c.id for c in result.predictions[0].candidates]


@pytest.mark.parametrize("part", ["", "/step-4"])
def test_a_run_that_is_made_anew_answers_anew(here, tmp_path, part):
    name, place = RUN + part, tmp_path / (part.strip("/") or "model")
    ask = Ask(text=TEXT, model=name, marks=(Mark(position=2),))
    (before,) = together(here.fill(ask))
    (map_before,) = together(here.attention(ask))
    first = here.model(name)
    assert here.model(name) is first
    assert together(here.fill(ask)) == [before]
    assert here.card(name)["family"] == "bert"
    train(place, "roberta-base", seed=3)
    (found,) = together(here.fill(ask))
    assert candidates(found) == candidates(fill(cm.load(place), TEXT, masks=[2], top_k=5))
    assert candidates(found) != candidates(before)
    (map_found,) = together(here.attention(ask))
    assert (
        map_found.probabilities.shape != map_before.probabilities.shape
        or not (map_found.probabilities == map_before.probabilities).all()
    )
    assert here.card(name)["family"] == "roberta"
    assert here.model(name) is not first
    assert here.number(here.model(name)) != here.number(first)


def test_the_list_of_models_names_the_heads_of_the_newest(here, tmp_path):
    assert ("mine (run) · gaps, next sentence", RUN) in here.choices()
    train(tmp_path / "model", heads=["next_sentence"])
    assert ("mine (run) · next sentence", RUN) in here.choices()


def test_an_opened_folder_that_is_written_anew_answers_anew(folder, open_with):
    session = open_with()
    name = opened(session, str(folder))
    first = session.model(name)
    train(folder, seed=5)
    weights = session.model(name).encoder.embeddings.pieces.weight
    assert not torch.equal(weights, first.encoder.embeddings.pieces.weight)
    shutil.rmtree(folder)
    with pytest.raises(
        InputError, match=f"^The files of {re.escape(name)} cannot be read: No such"
    ):
        session.model(name)


def test_a_model_that_is_written_anew_answers_anew_from_the_gpu(here, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "ON_GPU", gpu.answers)
    monkeypatch.setattr(gpu, "LARGE", 1)
    opens, load = [], cm.load
    ask = Ask(text=TEXT, model=RUN, marks=(Mark(position=2),))
    (before,) = together(here.fill(ask))
    train(tmp_path / "model", seed=3)
    (found,) = together(here.fill(ask))
    expected = fill(cm.load(tmp_path / "model"), TEXT, masks=[2], top_k=5)
    assert candidates(found) == candidates(expected) != candidates(before)
    monkeypatch.setattr(cm, "load", lambda place: opens.append(place) or load(place))
    together(here.attention(ask))
    assert not opens, "a model that is open already is not opened again"


def test_an_installed_model_that_is_written_anew_answers_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("CLOZE_MODELS", str(tmp_path))
    train(tmp_path / "mine")
    session = Session()
    ask = Ask(text=TEXT, model="mine", marks=(Mark(position=2),))
    try:
        (before,) = together(session.fill(ask))
        first = session.model("mine")
        assert together(session.ready("mine")) == [first]
        train(tmp_path / "mine", "roberta-base", seed=3)
        (found,) = together(session.fill(ask))
        expected = fill(cm.load(tmp_path / "mine"), TEXT, masks=[2], top_k=5)
        assert candidates(found) == candidates(expected) != candidates(before)
        (heads,) = [info.heads for info in session.models() if info.name == "mine"]
        assert heads == cm.inspect(tmp_path / "mine").heads
        assert session.card("mine")["family"] == "roberta"
        gone = weakref.ref(first)
        del first
        together(session.compute(lambda: None))  # the model thread has the question in its hands
        gc.collect()
        assert gone() is None
    finally:
        session.close()


@pytest.mark.parametrize(
    ("most", "told"),
    [
        (lambda size: {"parameters": size}, "has {1:,} parameters; .* up to {0:,} "),
        (lambda size: {"memory": 4 * size}, "needs .* of memory and opened models have .* MB here"),
    ],
    ids=["parameters", "memory"],
)
def test_an_opened_folder_that_is_written_anew_may_be_no_larger(
    folder, tmp_path, open_with, most, told
):
    size = cm.inspect(folder).parameters
    session = open_with(**most(size))
    name = opened(session, str(folder))
    session.model(name)
    new(tiny("bert-mini", layers=9)).save(folder)
    larger = cm.inspect(folder).parameters
    with pytest.raises(
        InputError, match=f"^{re.escape(name)} {told.format(size, larger)}"
    ) as caught:
        session.model(name)
    assert str(tmp_path) not in str(caught.value)
    train(folder, seed=5)
    assert session.model(name).name == name


def test_what_was_replaced_leaves_the_memory(here, tmp_path):
    gone = weakref.ref(here.model(RUN))
    here.card(RUN)
    train(tmp_path / "model", seed=3)
    here.card(RUN)
    gc.collect()
    assert gone() is None


def test_what_is_written_while_it_is_read_is_read_again(tmp_path):
    """The mark is that of before: what came meanwhile may be half of each."""
    train(tmp_path / "model")
    loads = []

    def load(place):
        found = cm.load(place)
        if not loads:
            train(place, seed=3)
        loads.append(found)
        return found

    held = shelf.Shelf(load, 1 << 30, shelf.written)
    first = held.get(tmp_path / "model")
    second = held.get(tmp_path / "model")
    assert [first, second] == loads
    assert held.get(tmp_path / "model") is second


def test_half_a_model_is_told_as_one_that_is_being_replaced(here, tmp_path, monkeypatch):
    """What does not fit in it is no fault of either."""
    load = cm.load

    def replaced(place):
        train(place, "roberta-base")
        (place / "config.json").write_text("{}")
        return load(place)

    monkeypatch.setattr(cm, "load", replaced)
    with pytest.raises(InputError, match="just been replaced by a newer one"):
        here.model(RUN)
    monkeypatch.setattr(cm, "load", load)
    with pytest.raises(InputError, match="config"):
        here.model(RUN)


def test_a_look_at_a_folder_reads_no_file(tmp_path, monkeypatch):
    train(tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("1")
    monkeypatch.setattr("builtins.open", lambda *args: pytest.fail("a file was opened"))
    before = shelf.mark(tmp_path / "model")
    assert [name for name, _, _ in before] == ["config.json", "model.safetensors"]
    os.utime(tmp_path / "model" / "config.json", ns=(1, 1))
    assert shelf.mark(tmp_path / "model") != before


def test_labs_answer_or_say_why_while_a_model_is_replaced(here, corpus, tmp_path):
    """Whatever moment a question meets: another model, half a folder, none."""
    stop, swaps = threading.Event(), iter(range(10_000))

    def swap():
        for number in swaps:
            train(tmp_path / "model", ("bert-mini", "roberta-base")[number % 2], seed=number)
            if stop.wait(0.01):
                return

    asks = (
        lambda: here.fill(Ask(text=TEXT, model=RUN, marks=(Mark(position=2),))),
        lambda: here.attention(Ask(text=TEXT, model=RUN)),
        lambda: here.random_mask(TEXT, RUN, seed=1, rate=0.5),
        lambda: here.tokenize(TEXT, RUN),
        lambda: asyncio.to_thread(here.card, RUN),
        lambda: asyncio.to_thread(here.choices),
        lambda: meaning.show(here, corpus, MEANING),
        lambda: meaning.show_near(here, corpus, MEANING),
    )
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        found = [each for _ in range(12) for each in together(*(ask() for ask in asks))]
    finally:
        stop.set()
        thread.join()
    problems = [each for each in found if isinstance(each, BaseException)]
    assert [each for each in problems if not isinstance(each, InputError)] == []
    assert len(problems) < len(found)
    assert str(tmp_path) not in str(problems)
    assert not [e for e in together(*(ask() for ask in asks)) if isinstance(e, BaseException)]


def test_the_meaning_lab_keeps_no_model_that_was_put_out(here, corpus, tmp_path):
    def ask():
        asyncio.run(meaning.show(here, corpus, MEANING))
        assert until(lambda: corpus.building(here.model(RUN), "english").index)
        asyncio.run(meaning.show_near(here, corpus, MEANING))

    ask()
    assert len(corpus.compared) == len(corpus._buildings) == len(corpus._backgrounds) == 1
    assert len(corpus._same) == 1
    gone = weakref.ref(here.model(RUN))
    here._of_runs._models.clear()
    together(here.compute(lambda: None))  # the model thread has the last question in its hands
    gc.collect()
    assert gone() is None
    ask()


@pytest.mark.parametrize(
    ("parameters", "memory", "fits"),
    [
        (39_999_999, 160_000_000, True),
        (40_000_000, 160_000_000, False),
        (40_000_000, 320_000_000, True),
        (500_000_000, 2 << 30, False),
        (500_000_000, 4 << 30, True),
    ],
)
def test_one_model_takes_no_more_than_all_may(parameters, memory, fits):
    """From 40 million parameters on a packed copy lies beside the model."""
    policy = Policy(memory=memory)
    assert (shelf.memory_of(parameters) <= memory) is fits
    if fits:
        policy.check_size("a", parameters)
        return
    told = rf"a needs {8 * parameters >> 20:,} MB of memory .* have {memory >> 20:,} MB here"
    with pytest.raises(InputError, match=told):
        policy.check_size("a", parameters)
