"""Questions to the modes of the Attention lab, and what the core says to them."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
import torch

import core_models as cm
import viz
from app.labs.attention import lab as attention
from app.labs.attention.scene import Lab
from app.parts.figure import drawn
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
QUESTION = {
    "mode": "heads",
    "layer": -2,
    "head": -2,
    "hide": False,
    "own": False,
    "second": "",
    "part": "all",
    "picks": "",
    "how": "mean",
    "token": -1,
    "upto": -1,
    "gap": -1,
    "off": "",
    "shared": True,
    "sweep": False,
    "query": -1,
    "other": "",
    "what": "mean",
    "place": "",
    "drawn": "",
    "acted": 0,
}
"""As the lab begins."""
HIDDEN = [{"position": 4, "case": "mask"}]


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


def ask(lab, mode, model="t-bert", *, text=TEXT, marks=(), **values):
    """What a question shows; every part of it can be sent to a page."""
    scene = {"text": text, "model": model, "marks": list(marks)}
    question = {**QUESTION, "scene": scene, "mode": mode, **values}
    found = asyncio.run(attention.look(lab, question))
    plain = {key: each for key, each in found.items() if not isinstance(each, go.Figure)}
    json.dumps(plain, allow_nan=False)
    for figure in (each for each in found.values() if isinstance(each, go.Figure)):
        json.dumps(drawn(figure), allow_nan=False)
    return found


def cells(figure):
    """The numbers of a map as it is drawn; shares as shares."""
    z = np.array(figure.data[0].z, dtype=float)
    return z / 100 if figure.data[0].zmax == 100 else z


def numbers(found):
    """The numbers of the lines."""
    sent = found["lines"]
    return viz.from_bytes(sent["data"], "<f4").reshape(sent["length"], sent["length"])


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
