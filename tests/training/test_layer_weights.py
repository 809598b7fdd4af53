"""Layer weighting: it begins as the plain encoder, mixes as its weights say, and they learn."""

import copy
import json

import pytest
import torch

import core_models as cm
from benchmarks.layer_weights import learning, weight_layers
from core_models.network.initialise import initialise
from core_models.training.folder import RunFolder
from core_models.training.process import train
from tests.training.conftest import quiet, text

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture
def batch():
    ids = torch.randint(5, 50, (2, 9), generator=torch.Generator().manual_seed(1))
    return cm.Batch(input_ids=ids, attention_mask=torch.ones(2, 9, dtype=torch.bool))


def encoder():
    config = cm.size("bert-mini").with_vocabulary(50)
    made = cm.Encoder(config).eval()
    initialise(made, 0.2, torch.Generator().manual_seed(2))
    return made


def test_it_begins_as_the_plain_encoder(batch):
    plain = encoder()
    weighted = copy.deepcopy(plain)
    weight_layers(weighted)
    expected = plain(batch).hidden
    torch.testing.assert_close(weighted(batch).hidden, expected, rtol=0, atol=0)
    places = torch.tensor([[1, 4], [0, 8]])
    found = weighted(batch, places=places).hidden
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_every_layer_reads_the_mix_that_its_row_says(batch):
    """By hand: the second layer reads half of the first's output and a third of the embeddings."""
    made = encoder()
    weight_layers(made)
    with torch.no_grad():
        made.weights[1, :2] = torch.tensor([1 / 3, 1 / 2])
        made.weights[made.config.steps] = 0.0
        made.weights[made.config.steps, 2] = 2.0
        shared = made._share(batch)["global"]
        zero = made.embeddings(batch, None)
        one = made.blocks[0](zero, shared)
        two = made.blocks[1](one / 2 + zero / 3, shared)
        torch.testing.assert_close(made(batch).hidden, 2 * two)


def test_the_first_step_is_that_of_the_plain_run_and_the_weights_learn(make_run, toy):
    """The same settings, seed and text: the same losses before the update."""
    model = toy()["model"] | {"dropout": 0.0}  # dropped rows differ where a pass asks fewer places
    plain = make_run("plain", model=model, steps=1, schedule={}, report_every=1)
    assert train(plain.config_path, quiet) == "finished"
    run = RunFolder(plain.path.with_name("weighted"))
    run.path.mkdir()
    (run.path / "text.txt").write_text(text(40))
    made, model = learning(run, json.loads(plain.config_path.read_text()))
    before = model.encoder.weights.detach().clone()
    made.update()
    made.settle()
    made.close()
    (record,) = plain.metrics()
    sums = made.sums()
    for name in ("masked_token", "next_sentence"):
        total, count = sums[f"{name}_loss"]
        assert total / count == pytest.approx(record[f"{name}_loss"], rel=1e-6)
    moved = (model.encoder.weights - before).abs() > 0
    assert moved.tolist() == torch.ones_like(before).tril().bool().tolist()
