"""Questions to the modes of the Attention tab, and what the core says to them."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch

import core_models as cm
import viz
from app.labs.attention import lab as attention
from app.labs.attention.scene import Lab
from app.parts.views import answered
from app.serving.session import Session
from core_models.prediction.passes import seen_with
from tests.core.tiny_models import new, tiny

TEXT = "red fox sees small dog"
SECOND = "birds sing in the tree"
HEADS = {
    "t-bert": ("bert-base", ("masked_token",)),
    "t-albert": ("albert-base", ("masked_token",)),
    "t-deberta": ("deberta-base", ("masked_token",)),
    "t-xlnet": ("xlnet-base", ("permutation",)),
    "t-judge": ("electra-base", ("replaced_token",)),
}


@contextmanager
def open_lab(folder: Path) -> Iterator[Lab]:
    """The lab over tiny random models, which are put into the folder."""
    for name, (size, heads) in HEADS.items():
        new(tiny(size, layers=3), heads=heads).save(folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOZE_MODELS", str(folder))
        session = Session()
        yield Lab(session)
        session.close()


def ask(lab, kind, model="t-bert", **values):
    data = {"rev": 5, "text": TEXT, "model": model, "marks": [], "lab": kind, **values}
    answer = asyncio.run(answered(partial(attention.compute, lab), data))
    json.dumps(answer, allow_nan=False)
    assert answer["rev"] == 5
    return answer


def save(lab, kind, what, model="t-bert", **values):
    data = {"rev": 6, "text": TEXT, "model": model, "lab": kind, "kind": what, **values}
    return asyncio.run(answered(partial(attention.save, lab), data))


def grid(answer, n=0):
    if not answer["grids"]:  # the mode draws from the numbers of one map
        sent = answer["numbers"]
        return viz.from_bytes(sent["data"], "<f4").reshape(sent["length"], sent["length"])
    sent = answer["grids"][n]
    return viz.from_bytes(sent["data"], "<f4").reshape(len(sent["rows"]), len(sent["columns"]))


def traced(lab, model="t-bert", sites=("probabilities",), masks=(), second=None):
    loaded = lab.session.model(model)
    (encoding,) = loaded.encode([(TEXT, second) if second else TEXT])
    encoding = seen_with(encoding, dict.fromkeys(masks, loaded.tokenizer.mask_id))
    trace = cm.Trace(sites)
    with torch.no_grad():
        loaded.encoder(loaded.collate([encoding]), trace)
    return loaded, encoding, trace


def maps(lab, **values):
    return traced(lab, **values)[2].stack("probabilities")[:, 0].numpy()


HIDDEN = [{"position": 4, "case": "mask"}]
