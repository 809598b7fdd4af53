"""Linear probes of frozen states."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.tasks.encode import Coder
from core_models.tasks.probe import _Reader, probe
from core_models.tasks.sets import TaskSet
from tests.tasks.conftest import first_rows


def on_itself(name: str, rows: int = 16) -> TaskSet:
    task = first_rows(name, rows)
    return replace(task, dev=task.train)


@pytest.mark.parametrize(
    ("name", "metric", "reached"),
    [
        ("topic", "accuracy", 0.9),
        ("nli", "accuracy", 0.9),
        ("similarity", "pearson", 0.9),
        ("ner", "entity_f1", 0.4),  # more words than dimensions
    ],
)
def test_few_rows_are_told_apart_in_many_dimensions(
    model: cm.Model, name: str, metric: str, reached: float
) -> None:
    before = {n: t.clone() for n, t in model.state_dict().items()}
    found = probe(model, on_itself(name), strength=0.01)
    assert found.main == metric
    assert found.metrics[metric] >= reached
    assert found.layer == model.config.steps
    assert all(torch.equal(before[n], t) for n, t in model.state_dict().items())


def test_layers_and_poolings_are_what_they_say(model: cm.Model) -> None:
    task = on_itself("topic", 4)
    coder = Coder.of(model, task)
    texts = [row.text for row in task.train]
    batch = model.batch(texts)
    with torch.no_grad():
        hidden = model.encoder(batch).hidden
        mask = torch.ones(batch.shape) if batch.attention_mask is None else batch.attention_mask
    cls = -1 if model.tokenizer.template.pad_left else 0
    read = torch.tensor(np.stack(_Reader(coder, model.config.steps, "first", 2).rows(task.train)))
    torch.testing.assert_close(read, hidden[:, cls], atol=1e-5, rtol=0)
    means = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    read = torch.tensor(np.stack(_Reader(coder, model.config.steps, "mean", 3).rows(task.train)))
    torch.testing.assert_close(read, means, atol=1e-5, rtol=0)
    start = torch.tensor(np.stack(_Reader(coder, 0, "mean", 3).rows(task.train)))
    assert not torch.allclose(start, read, atol=1e-2)


def test_words_of_tags_are_read_at_their_first_piece(model: cm.Model) -> None:
    task = on_itself("ner", 4)
    coder = Coder.of(model, task)
    found = _Reader(coder, model.config.steps, "token", 4).tokens(task.train)
    for row, words in zip(task.train, found, strict=True):
        assert list(words) == list(range(len(row.tokens)))
    (feature,) = coder.features(task.train[:1])
    with torch.no_grad():
        alone = model.encoder(coder.batch([feature])).hidden[0]
    place = feature.words.index(2)
    torch.testing.assert_close(torch.tensor(found[0][2]), alone[place], atol=1e-5, rtol=0)


@pytest.mark.parametrize("strength", [0.0, -1.0, float("nan")])
def test_a_probe_needs_a_penalty(bert: cm.Model, strength: float) -> None:
    with pytest.raises(InputError, match=r"strength is .*; it must be above 0"):
        probe(bert, first_rows("topic"), strength=strength)


def test_what_cannot_be_probed_is_told(bert: cm.Model) -> None:
    with pytest.raises(InputError, match=r"Layer 9 does not exist; this model has 0 .* to 2"):
        probe(bert, on_itself("topic"), layer=9)
    with pytest.raises(InputError, match="pooling is 'max'"):
        probe(bert, on_itself("topic"), pooling="max")
    with pytest.raises(InputError, match="no matter for a linear probe"):
        probe(bert, on_itself("qa"))
    with pytest.raises(InputError, match="training mode"):
        probe(bert.clone().train(), on_itself("topic"))
