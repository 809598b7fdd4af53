"""Short passes keep to one core, in the threads that asked for it and nowhere else."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import core_models as cm
from app.serving import cores
from app.serving.session import Session
from core_models.model import SHIPPED
from core_models.prediction.targets import frozen_copy

TEXT = "The capital of France is Paris."
LONG = 400
"""Copies of the text, whose pass is a long one."""


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def thread(two_threads):
    with ThreadPoolExecutor(1) as pool:
        yield lambda work: pool.submit(work).result()


def after_pass(model, copies):
    """Cores of the calling thread after one pass."""
    with torch.inference_mode():
        model.encoder(model.batch([TEXT] * copies))
    return torch.get_num_threads()


def test_a_short_pass_takes_one_core(thread):
    model, chosen = cm.load("bert-mini"), cores.Cores()
    chosen.watch(model)
    assert thread(lambda: after_pass(model, 1)) == 2  # did not ask for it
    thread(chosen.choose_here)
    assert thread(lambda: after_pass(model, 1)) == 1
    assert thread(lambda: after_pass(model, LONG)) == 2
    copy = frozen_copy(model)
    assert thread(lambda: after_pass(copy, 1)) == 1
    assert torch.get_num_threads() == 2  # here as before
    assert after_pass(model, 1) == 2


@pytest.mark.skipif(cores._MKL is None, reason="torch has no MKL here")
def test_products_take_as_many_cores_as_all_else(thread):
    """torch.set_num_threads, of the fixture, tells MKL a number of its own in each new thread."""
    model, chosen = cm.load("bert-mini"), cores.Cores()
    chosen.watch(model)
    thread(lambda: after_pass(model, 1))
    assert thread(cores._MKL.MKL_Get_Max_Threads) == 2
    thread(chosen.choose_here)
    for copies, expected in ((1, 1), (LONG, 2)):
        thread(lambda copies=copies: after_pass(model, copies))
        assert thread(cores._MKL.MKL_Get_Max_Threads) == expected


def test_repeated_layers_count_as_often_as_they_run(thread):
    """ALBERT's one block runs at every step."""
    albert, chosen = cm.load(SHIPPED / "albert-mini"), cores.Cores()
    chosen.watch(albert)
    thread(chosen.choose_here)
    rows = next(n for n in range(1, LONG) if thread(lambda n=n: after_pass(albert, n)) == 2)
    tokens = rows * albert.batch([TEXT]).shape[1]
    weights = sum(p.numel() for p in albert.encoder.blocks.parameters())
    assert tokens * 2 * weights * albert.config.steps == pytest.approx(cores.SHORT, rel=0.2)


def test_one_core_leaves_nothing_to_choose(two_threads):
    torch.set_num_threads(1)
    model = cm.load("bert-mini")
    cores.Cores().watch(model)
    assert not model.encoder._forward_pre_hooks


def test_the_model_thread_asks_for_it(two_threads):
    session = Session()
    try:
        model = session.model("bert-mini")
        few = asyncio.run(session.compute(lambda: after_pass(model, 1)))
        many = asyncio.run(session.compute(lambda: after_pass(model, LONG)))
    finally:
        session.close()
    assert (few, many) == (1, 2)
