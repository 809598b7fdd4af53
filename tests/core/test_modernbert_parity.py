"""ModernBERT against transformers on random tiny models: outputs, states, gradients, heads."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForMaskedLM,
    ModernBertForMultipleChoice,
    ModernBertForQuestionAnswering,
    ModernBertForSequenceClassification,
    ModernBertForTokenClassification,
    ModernBertModel,
)

from core_models.errors import InputError
from core_models.network.trace import Trace
from tests.core import parity
from tests.core.modernbert import HEADS, WINDOW, inputs, theirs
from tests.core.parity import batch_of, read

ODD = {
    "hidden_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "intermediate_size": 9,
    "hidden_activation": "silu",
    "classifier_activation": "relu",
    "layer_types": ["sliding_attention", "full_attention"],
}
BIASES = {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True}
SHAPES = [{}, ODD, BIASES, {"global_attn_every_n_layers": 1}]
LENGTHS = [1, 3, WINDOW + 1, 12, 13, 38, 61]
"""Below the window, at its border, and far above it, where it is computed in blocks."""
PADDINGS = ["none", "left", "right", "middle", "wide gap", "everywhere"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("traced", [False, True])
def test_outputs_equal(tmp_path: Path, shape: dict[str, Any], length: int, traced: bool) -> None:
    reference = theirs(shape)
    model = parity.written(reference, tmp_path)
    for pad in PADDINGS:
        parity.check_outputs(model, reference, inputs(length, pad), HEADS, traced=traced)


@pytest.mark.parametrize("length", [12, 38])
@pytest.mark.parametrize("pad", ["none", "left", "everywhere"])
def test_states_of_every_layer_and_attention_equal(tmp_path: Path, length: int, pad: str) -> None:
    reference = theirs({})
    reference.set_attn_implementation("eager")
    model = parity.written(reference, tmp_path)
    values = inputs(length, pad)
    real = values["attention_mask"].bool()
    trace = Trace(["probabilities"])
    with torch.no_grad():
        expected = reference(**values, output_hidden_states=True, output_attentions=True)
        states = model.encoder(batch_of(values), every_step=True).states
        model.encoder(batch_of(values), trace)
    assert len(states) == len(expected.hidden_states) == 6
    for ours, other in zip(states, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours[real], other[real], atol=1e-5, rtol=0)
    for step, other in enumerate(expected.attentions):
        ours = trace["probabilities", step].permute(0, 2, 1, 3)
        torch.testing.assert_close(ours[real], other.permute(0, 2, 1, 3)[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("shape", [{}, BIASES])
@pytest.mark.parametrize(("length", "pad"), [(12, "left"), (38, "everywhere"), (61, "wide gap")])
def test_gradients_equal_in_train_mode(
    tmp_path: Path, shape: dict[str, Any], length: int, pad: str
) -> None:
    reference = theirs(shape)
    model = parity.written(reference, tmp_path)
    parity.check_gradients(model, reference, inputs(length, pad), HEADS)


def test_small_weights_show_the_epsilon_of_norms(tmp_path: Path) -> None:
    reference = theirs({}, scale=3e-3)
    model = parity.written(reference, tmp_path)
    assert model.config.norm_epsilon == 1e-5
    parity.check_epsilon(model, reference, inputs(11, "none"), HEADS)


def test_embeddings_in_place_of_ids(tmp_path: Path) -> None:
    reference = theirs({})
    parity.check_embeddings(parity.written(reference, tmp_path), reference, inputs(38, "none"))


@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip_is_bit_equal(tmp_path: Path, shape: dict[str, Any]) -> None:
    model = parity.check_round_trip(theirs(shape), AutoModelForMaskedLM, tmp_path)
    assert model.config.family == "modernbert"


TASKS = {
    "classify": (ModernBertForSequenceClassification, {"num_labels": 3}),
    "regress": (ModernBertForSequenceClassification, {"num_labels": 1}),
    "tag": (ModernBertForTokenClassification, {"num_labels": 5}),
    "span": (ModernBertForQuestionAnswering, {}),
}


@pytest.mark.parametrize("head", TASKS)
@pytest.mark.parametrize("shape", [{}, BIASES | {"classifier_activation": "silu"}])
def test_fine_tuned_heads_equal(tmp_path: Path, head: str, shape: dict[str, Any]) -> None:
    kind, values = TASKS[head]
    reference = theirs(values | shape, kind)
    model = parity.check_round_trip(reference, kind, tmp_path)
    assert list(model.heads) == [head]
    given = inputs(38, "right")
    real = given["attention_mask"].bool()
    with torch.no_grad():
        expected = reference(**given)
        ours = model.logits(batch_of(given))[head]
    if head == "span":
        logits = torch.stack([expected.start_logits, expected.end_logits], -1)
    else:
        logits = expected.logits.squeeze(-1) if head == "regress" else expected.logits
    per_token = ours.shape[:2] == real.shape
    keep = real if per_token else slice(None)
    torch.testing.assert_close(ours[keep], logits[keep], atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", ["classify", "regress"])
def test_texts_by_the_mean_of_their_tokens(tmp_path: Path, head: str) -> None:
    """The released files say ``classifier_pooling: mean``."""
    kind, values = TASKS[head]
    reference = theirs(values | {"classifier_pooling": "mean"}, kind)
    model = parity.check_round_trip(reference, kind, tmp_path)
    given = inputs(38, "left")
    with torch.no_grad():
        expected = reference(**given).logits
        ours = model.heads[head].answer(model.encoder, batch_of(given))
        first = model.heads[head](model.encoder(batch_of(given)).hidden)
    logits = expected.squeeze(-1) if head == "regress" else expected
    torch.testing.assert_close(ours, logits, atol=1e-5, rtol=0)
    assert not torch.allclose(first[1], logits[1], atol=1e-2)  # padding must not count


def test_a_bare_encoder_has_no_head(tmp_path: Path) -> None:
    assert set(parity.written(theirs({}, ModernBertModel), tmp_path).heads) == set()


def test_several_choices_are_refused(tmp_path: Path) -> None:
    theirs({}, ModernBertForMultipleChoice).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="ModernBertForMultipleChoice, whose head"):
        read(tmp_path)
