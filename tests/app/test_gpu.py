"""A Space that is lent a GPU for seconds, with a stand-in for its package."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.serving import gpu
from app.serving.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
SPACES = """
import json, os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

def GPU(task=None, duration=None):
    if task is None:
        return lambda task: GPU(task, duration)
    note("decorated", task.__name__, duration)
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    def call(*given):
        note("called", given[0], os.path.basename(given[1]), len(given[3]))
        return pool.submit(task, *given).result()
    return call

def note(*what):
    with open(os.environ["NOTES"], "a") as file:
        file.write(json.dumps(what) + "\\n")
"""
ASKING = """
import asyncio
from app.labs.why import answers as why
from app.labs.why.service import Explainer
from app.serving import gpu
from app.serving.ask import Ask, Mark
from app.serving.cache import Cache
from app.serving.session import Session

def main():
    session = Session(threads=1)
    text = "The capital of France is Paris."
    ask = Ask(text=text, model="bert-mini", marks=(Mark(position=6),))
    found = []
    for least in (10**12, 1):
        gpu.LARGE = least
        session._cache = session._fills = Cache(1 << 20)
        fills = asyncio.run(session.fill(ask))
        maps = asyncio.run(session.attention(ask))
        found.append((repr(fills), maps.probabilities.tobytes(), maps.seen))
    assert found[0] == found[1]
    asyncio.run(explained(session, text))
    session.close()

async def explained(session, text):
    sentence = {"text": text, "model": "bert-mini", "marks": [{"position": 6}]}
    values = dict.fromkeys(("second", "kind", "position", "word", "against", "baseline"))
    values |= {"sentence": sentence, "scale": "log_probability", "steps": 10, "window": 1}
    found = []
    for least in (10**12, 1):
        gpu.LARGE = least
        explainer = Explainer(session)
        model, question, _ = await explainer.plan(why.read(values))
        answer = await explainer.explain(model, question, "ada")
        while not isinstance(answer, dict):
            answer = await explainer.explain(model, question, "ada")
        found.append(answer)
    assert found[0]["methods"].keys() == found[1]["methods"].keys()
    assert found[0] == found[1]

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_large_models_answer_from_the_gpu_and_as_here(tmp_path):
    (tmp_path / "spaces.py").write_text(SPACES)
    (tmp_path / "asking.py").write_text(ASKING)
    zero = {
        "SPACES_ZERO_GPU": "true",
        "NOTES": str(tmp_path / "notes"),
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
    }
    done = subprocess.run(
        [sys.executable, "asking.py"], cwd=tmp_path, env=os.environ | zero, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    notes = [json.loads(line) for line in (tmp_path / "notes").read_text().splitlines()]
    # The process of the GPU reads the module, too.
    assert [n for n in notes if n[0] == "decorated"] == 2 * [["decorated", "answers", gpu.SECONDS]]
    assert [n for n in notes if n[0] == "called"] == [
        ["called", "fill", "bert-mini", 1],
        ["called", "attention", "bert-mini", 1],
        ["called", "work", "bert-mini", 1],
    ]


@pytest.mark.parametrize(("value", "lent"), [("true", True), ("1", True), ("", False)])
def test_nothing_trains_where_the_gpu_is_lent(value, lent):
    environment = {"SPACES_ZERO_GPU": value}
    assert gpu.lent(environment) is lent
    assert Settings.from_environment(environment).training is not lent


def test_elsewhere_nothing_changes(model, monkeypatch):
    assert gpu.ON_GPU is None
    assert not gpu.large(model)
    monkeypatch.setattr(gpu, "LARGE", sum(p.numel() for p in model.parameters()))
    assert gpu.large(model)
