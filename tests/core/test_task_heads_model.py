"""Fine-tuning heads on a pretrained model: what is new, what is kept, what a file tells."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf

import core_models as cm
from core_models.batch import Batch
from core_models.checkpoints.formats import BY_FAMILY
from core_models.config.task import Task
from core_models.families import FAMILIES, size
from core_models.heads.pretraining import build_head
from core_models.heads.task import MixedTagHead, SimilarityHead
from tests.core.test_own_fields import tiny

LINES = ["The red fox sees the small dog.", "A dog likes the old house.", "Birds sing in the tree."]
WORDS = cm.Tokenizer.train(LINES * 5, vocabulary=120, kind="wordpiece")
HEADS: dict[str, dict[str, Any]] = {
    "classify": {"labels": ("no", "yes", "perhaps")},
    "regress": {},
    "tag": {"labels": ("O", "B", "I", "E")},
    "span": {},
    "similarity": {"pooling": "mean"},
}
CLASSES = {
    "classify": tf.AutoModelForSequenceClassification,
    "regress": tf.AutoModelForSequenceClassification,
    "tag": tf.AutoModelForTokenClassification,
    "span": tf.AutoModelForQuestionAnswering,
    "similarity": tf.AutoModel,
}
POOLED = {"bert": "next_sentence", "macbert": "sentence_order", "albert": "sentence_order"}


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pretrained(family: str = "bert") -> cm.Model:
    """Its poolers and biases are far from their initial values."""
    config = tiny(size(next(iter(FAMILIES[family].sizes)))).with_vocabulary(WORDS.vocabulary)
    model = cm.Model.new(config, WORDS, generator=generator()).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator(2)) * 0.1)
    return model


def inputs(length: int = 9) -> Batch:
    ids = torch.randint(5, WORDS.vocabulary, (3, length), generator=generator(3))
    mask = torch.ones(3, length, dtype=torch.bool)
    mask[1, -3:] = False
    return Batch(input_ids=ids, attention_mask=mask)


def answer(model: cm.Model, batch: Batch) -> torch.Tensor:
    (head,) = model.heads.values()
    with torch.no_grad():
        found: torch.Tensor = head.answer(model.encoder, batch)
    return found


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_head_stands_on_the_same_encoder_and_is_kept(
    tmp_path: Path, family: str, name: str
) -> None:
    base = pretrained(family)
    model = base.with_head(name, generator=generator(4), **HEADS[name])
    assert list(model.heads) == [name]
    assert not model.training
    kept = base.encoder.state_dict()
    for key, tensor in model.encoder.state_dict().items():
        assert torch.equal(tensor, kept[key]), key
        assert tensor.data_ptr() != kept[key].data_ptr(), key
    assert model.encoder.mask_decoder is None
    model.save(tmp_path)
    again = cm.load(tmp_path)
    assert again.config == model.config
    assert again.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(t, again.state_dict()[n]) for n, t in model.state_dict().items())
    assert again.heads[name].labels == HEADS[name].get("labels", ())
    assert torch.equal(answer(again, inputs()), answer(model, inputs()))

    form = BY_FAMILY[family]
    if not form.in_transformers or (form.tasks.answering is None and name == "span"):
        return  # transformers has no class for it
    opened, found = CLASSES[name].from_pretrained(tmp_path, output_loading_info=True)
    if name != "similarity":  # the bare classes of some families have a pooler of their own
        assert not any(found.values()), found
    batch = inputs()
    assert batch.attention_mask is not None
    with torch.no_grad():
        theirs = opened.eval()(batch.input_ids, attention_mask=batch.attention_mask.long())
    if name == "similarity":
        hidden = model.encoder(batch).hidden
        real = batch.attention_mask
        torch.testing.assert_close(theirs.last_hidden_state[real], hidden[real], atol=1e-5, rtol=0)
        return
    if name == "span":
        expected = torch.stack([theirs.start_logits, theirs.end_logits], -1)
    else:
        expected = theirs.logits.squeeze(-1) if name == "regress" else theirs.logits
    rows = batch.attention_mask if name in ("tag", "span") else slice(None)
    ours = answer(model, batch)
    if family == "xlnet" and name not in ("tag", "span"):
        rows = batch.attention_mask[:, -1]  # a last token that is padding speaks for nothing
    torch.testing.assert_close(ours[rows], expected[rows], atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["classify", "regress"])
def test_a_trained_pooler_is_taken_over_where_transformers_does_so(family: str, name: str) -> None:
    base = pretrained(family)
    model = base.with_head(name, generator=generator(4), **HEADS[name])
    dense = model.heads[name].dense
    if family == "modernbert":  # it reads a text as it reads masked tokens
        trained = base.heads["masked_token"]
        assert torch.equal(dense.weight, trained.dense.weight)
        assert torch.equal(model.heads[name].norm.weight, trained.norm.weight)
    elif family in POOLED:
        pooler = base.heads[POOLED[family]].pooler.dense
        assert torch.equal(dense.weight, pooler.weight)
        assert torch.equal(dense.bias, pooler.bias)
    else:
        assert not dense.bias.any()
        assert 0.015 < dense.weight.std().item() < 0.025
    assert not model.heads[name].classifier.bias.any()


def test_the_pooler_is_the_one_that_transformers_takes(tmp_path: Path) -> None:
    base = pretrained()
    base.save(tmp_path)
    theirs = tf.BertForSequenceClassification.from_pretrained(tmp_path)
    model = base.with_head("classify", ("a", "b"))
    assert torch.equal(model.heads["classify"].dense.weight, theirs.bert.pooler.dense.weight)


def test_a_head_can_follow_another_task() -> None:
    first = pretrained("roberta").with_head("classify", ("a", "b", "c"), generator=generator(4))
    second = first.with_head("regress", generator=generator(5))
    assert torch.equal(second.heads["regress"].dense.weight, first.heads["classify"].dense.weight)
    assert second.config.task == Task(head="regress", dropout_before=True)


def test_the_same_seed_gives_the_same_head() -> None:
    base = pretrained("electra")
    one, two = (base.with_head("classify", ("a", "b"), generator=generator(7)) for _ in range(2))
    assert all(torch.equal(t, two.state_dict()[n]) for n, t in one.state_dict().items())


def test_the_mix_is_a_softmax_over_every_step_times_a_scale(tmp_path: Path) -> None:
    base = pretrained("albert")
    model = base.with_head("tag", ("O", "B"), every_step=True, generator=generator(4))
    head = model.heads["tag"]
    assert isinstance(head, MixedTagHead)
    batch = inputs()
    theirs = states_of(base, batch, tmp_path)
    states = model.encoder(batch, every_step=True).states
    assert len(states) == len(theirs) == 3
    real = batch.attention_mask
    for ours, expected in zip(states, theirs, strict=True):
        torch.testing.assert_close(ours[real], expected[real], atol=1e-5, rtol=0)
    assert model.encoder(batch).states == ()
    with torch.no_grad():
        head.weights.copy_(torch.tensor([0.0, math.log(2), math.log(5)]))
        head.scale.fill_(4.0)
        mix = 4.0 * (states[0] / 8 + states[1] * 2 / 8 + states[2] * 5 / 8)
        expected = mix @ head.classifier.weight.T + head.classifier.bias
    torch.testing.assert_close(answer(model, batch), expected, atol=1e-5, rtol=0)
    head.answer(model.encoder, batch).sum().backward()
    assert head.weights.grad is not None
    assert head.weights.grad.abs().min() > 0
    model.save(tmp_path / "mix")
    again = cm.load(tmp_path / "mix")
    assert torch.equal(answer(again, batch), answer(model, batch))
    # transformers has no such head and must not take this one for its own
    _, info = tf.AutoModelForTokenClassification.from_pretrained(
        tmp_path / "mix", output_loading_info=True
    )
    assert {"classifier.weight", "classifier.bias"} <= set(info["missing_keys"])
    with pytest.raises(ValueError, match="takes 3 states, not 1"):
        head(states[:1])


def states_of(model: cm.Model, batch: Batch, folder: Path) -> tuple[torch.Tensor, ...]:
    """What transformers calls the hidden states."""
    model.save(folder / "base")
    opened = tf.AutoModel.from_pretrained(folder / "base").eval()
    assert batch.attention_mask is not None
    with torch.no_grad():
        found = opened(
            batch.input_ids,
            attention_mask=batch.attention_mask.long(),
            output_hidden_states=True,
        )
    states: tuple[torch.Tensor, ...] = found.hidden_states
    return states


def test_similarity_of_hand_computed_vectors() -> None:
    config = replace(pretrained().config, task=Task(head="similarity", pooling="mean"))
    head = build_head("similarity", config, cm.Model.new(config, WORDS).encoder.embeddings)
    assert isinstance(head, SimilarityHead)
    assert list(head.parameters()) == []
    hidden = torch.tensor([[[1.0, 0.0], [3.0, 4.0], [float("nan"), 9.0]], [[2.0, 2.0]] * 3])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    vectors = head(hidden, mask)
    assert vectors.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert head(hidden[1:]).tolist() == [[2.0, 2.0]]
    cosine = head.cosine(
        torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.tensor([[4.0, 3.0], [-2, 0]])
    )
    torch.testing.assert_close(cosine, torch.tensor([0.96, -1.0]))


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_the_token_that_stands_for_the_text(family: str) -> None:
    model = pretrained(family).with_head("similarity")
    batch = inputs()
    place = -1 if family == "xlnet" else 0
    with torch.no_grad():
        hidden = model.encoder(batch).hidden
    torch.testing.assert_close(answer(model, batch), hidden[:, place], atol=1e-6, rtol=1e-5)


def test_two_texts_are_compared(tmp_path: Path) -> None:
    model = pretrained().with_head("similarity", pooling="mean")
    first, second = inputs(9), inputs(6)
    together = replace(first, second=second)
    a, b = answer(model, first), answer(model, second)
    expected = (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))
    torch.testing.assert_close(answer(model, together), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(
        answer(model, replace(first, second=first)), torch.ones(3), atol=1e-6, rtol=0
    )
    moved = together.to("meta")
    assert moved.second is not None
    assert moved.second.device.type == "meta"
    model.save(tmp_path)
    again = cm.load(tmp_path)
    assert again.config.task == Task(head="similarity", pooling="mean")
    assert torch.equal(answer(again, together), answer(model, together))


def test_dropout_is_the_heads_own_and_only_in_training() -> None:
    base = pretrained("roberta")
    assert base.with_head("classify", ("a", "b")).heads["classify"].dropout.p == 0.1
    model = base.with_head("classify", ("a", "b"), dropout=0.5)
    head = model.heads["classify"]
    assert head.dropout.p == 0.5
    hidden = model.encoder(inputs()).hidden.detach()
    assert torch.equal(head(hidden), head(hidden))
    head.train()
    assert not torch.equal(head(hidden), head(hidden))
    without = model.config.with_dropout(0.0)
    assert build_head("classify", without, model.encoder.embeddings).dropout.p == 0.0
    # ALBERT's and XLNet's published rates are not the encoder's
    albert = pretrained("albert").with_head("classify", ("a", "b")).heads["classify"]
    assert albert.dropout.p == 0.1
    assert pretrained("xlnet").with_head("tag", ("a",)).heads["tag"].dropout.p == 0.0


@pytest.mark.parametrize(
    ("family", "name", "field"),
    [
        ("bert", "classify", "classifier_dropout"),
        ("albert", "tag", "classifier_dropout_prob"),
        ("deberta", "classify", "cls_dropout"),
        ("deberta", "tag", None),
        ("xlnet", "classify", "summary_last_dropout"),
        ("xlnet", "tag", None),
    ],
)
def test_a_dropout_rate_is_kept(tmp_path: Path, family: str, name: str, field: str | None) -> None:
    model = pretrained(family).with_head(name, ("a", "b"), dropout=0.3)
    model.save(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    assert (values.get(field) if field else values["cloze_task"]["dropout"]) == 0.3
    assert ("cloze_task" in values) == (field is None)
    assert cm.load(tmp_path).heads[name].dropout.p == 0.3


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("rank", {}, "task.head is 'rank'; allowed are classify, multilabel, "),
        ("classify", {}, "classify is 0; allowed are 2 to 10000"),
        ("classify", {"labels": ("a",)}, "the head classify is 1"),
        ("classify", {"labels": ("a", "a")}, "Labels must differ"),
        ("tag", {"labels": ("a", "")}, "not be empty"),
        ("regress", {"labels": ("a", "b")}, "takes no labels; got 'a'"),
        ("span", {"dropout": 0.1}, "span has no dropout"),
        ("classify", {"labels": ("a", "b"), "dropout": 1.5}, "task.dropout is 1.5"),
        ("tag", {"labels": ("a", "b"), "pooling": "mean"}, "belongs to whole texts"),
        ("similarity", {"pooling": "late"}, "similarity has none"),
        ("similarity", {"every_step": True}, "belongs to tag"),
        ("similarity", {"pooling": "max"}, "task.pooling is 'max'; allowed are token, mean"),
    ],
)
def test_impossible_tasks_are_refused(name: str, options: dict[str, Any], match: str) -> None:
    with pytest.raises(cm.InputError, match=match):
        pretrained().with_head(name, **options)


def test_a_head_needs_its_task() -> None:
    model = pretrained()
    with pytest.raises(cm.InputError, match=r"classify needs a config whose task is classify"):
        build_head("classify", model.config, model.encoder.embeddings)


def test_every_familys_files_know_every_task() -> None:
    for family, form in BY_FAMILY.items():
        if not form.in_transformers:
            continue
        classes = {form.tasks.architecture(Task(head=h)) for h in ("regress", "span")}
        if form.tasks.answering is None:
            classes.discard(None)
        for name in classes:
            assert name is not None
            assert issubclass(getattr(tf, name), tf.PreTrainedModel), family


@pytest.mark.parametrize("labels", [None, "abc", 3, [1, 2]])
def test_labels_are_a_list_of_texts(labels: object) -> None:
    """A text alone was a label for each of its letters."""
    with pytest.raises(cm.InputError, match="labels must"):
        pretrained("bert").with_head("classify", labels)  # type: ignore[arg-type]
