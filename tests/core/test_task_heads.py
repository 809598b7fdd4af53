"""Fine-tuning heads against transformers' classes, both directions, on random tiny models."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf
from torch import Tensor

from core_models.checkpoints.formats import BY_FAMILY
from core_models.config.task import Task
from tests.core import parity
from tests.core.parity import VOCABULARY, Bare

BODY = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
RELATIVE = {
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": ["p2c", "c2p"],
    "max_relative_positions": 6,
    "type_vocab_size": 0,
    "legacy": False,
}
DISTILBERT = {
    "vocab_size": VOCABULARY,
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 48,
    "max_position_embeddings": 40,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "qa_dropout": 0.0,
    "seq_classif_dropout": 0.0,
}
XLNET = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "n_layer": 2,
    "n_head": 4,
    "d_inner": 48,
    "pad_token_id": 5,
}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", BODY),
    "roberta": ("Roberta", BODY | {"pad_token_id": 1, "type_vocab_size": 1}),
    "distilbert": ("DistilBert", DISTILBERT),
    "albert": ("Albert", BODY | {"embedding_size": 12}),
    "electra": ("Electra", BODY | {"embedding_size": 12}),
    "deberta": ("Deberta", BODY | RELATIVE),
    "deberta-v2": ("DebertaV2", BODY | RELATIVE | {"position_buckets": 4, "share_att_key": True}),
    "xlnet": ("XLNet", XLNET),
    "modernbert": ("ModernBert", BODY | {"pad_token_id": 0, "local_attention": 6}),
}
CLASSES = {
    "classify": "ForSequenceClassification",
    "multilabel": "ForSequenceClassification",
    "regress": "ForSequenceClassification",
    "tag": "ForTokenClassification",
    "span": "ForQuestionAnswering",
}
AUTO = {
    "classify": tf.AutoModelForSequenceClassification,
    "multilabel": tf.AutoModelForSequenceClassification,
    "regress": tf.AutoModelForSequenceClassification,
    "tag": tf.AutoModelForTokenClassification,
    "span": tf.AutoModelForQuestionAnswering,
}
LABELS = ("no", "perhaps", "yes")
NAMED = ("classify", "multilabel", "tag")
NO_DROPOUT = dict.fromkeys(
    (
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "classifier_dropout",
        "classifier_dropout_prob",
        "cls_dropout",
        "dropout",
        "summary_last_dropout",
    ),
    0.0,
)


def theirs(family: str, head: str, **more: Any) -> Any:
    """A random model of their class, its labels named."""
    stem, values = FAMILIES[family]
    kind = stem + CLASSES[head] + ("Simple" if (family, head) == ("xlnet", "span") else "")
    if head == "multilabel":
        more["problem_type"] = "multi_label_classification"
    if head in NAMED:
        more["id2label"] = dict(enumerate(LABELS))
        more["label2id"] = {name: number for number, name in enumerate(LABELS)}
    if head == "regress":
        more["num_labels"] = 1
    config = getattr(tf, stem + "Config")(**values | more)
    return parity.randomised(getattr(tf, kind)(config))


def values_of(family: str, length: int, pad: str) -> dict[str, Tensor]:
    config = FAMILIES[family][1]
    return parity.inputs(
        length,
        pad,
        pad_id=config.get("pad_token_id", 0),
        segments=2 if family in ("bert", "albert", "electra", "xlnet") else 1,
    )


def answers(model: Any, values: dict[str, Tensor], head: str) -> Tensor:
    """Their scores in the shape of ours."""
    found = model(**values)
    if head == "span":
        return torch.stack([found.start_logits, found.end_logits], -1)
    logits: Tensor = found.logits
    return logits.squeeze(-1) if head == "regress" else logits


def ours(model: Bare, values: dict[str, Tensor]) -> Tensor:
    (head,) = model.heads.values()
    answer: Tensor = head.answer(model.encoder, parity.batch_of(values))
    return answer


def real(head: str, family: str, values: dict[str, Tensor]) -> Tensor:
    """Rows whose [CLS] is no padding, or real tokens."""
    mask = values["attention_mask"].bool()
    if head in ("tag", "span"):
        return mask
    return mask[:, -1] if family == "xlnet" else mask[:, 0]


@pytest.mark.parametrize("head", CLASSES)
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_equal(tmp_path: Path, family: str, head: str) -> None:
    reference = theirs(family, head)
    model = parity.written(reference, tmp_path)
    assert list(model.heads) == [head]
    assert model.heads[head].labels == (LABELS if head in NAMED else ())
    for length, pad in parity.LENGTHS:
        values = values_of(family, length, pad)
        keep = real(head, family, values)
        assert keep.sum() >= 2
        with torch.no_grad():
            expected = answers(reference, values, head)[keep]
            torch.testing.assert_close(ours(model, values)[keep], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", CLASSES)
@pytest.mark.parametrize("family", FAMILIES)
def test_both_directions_keep_every_bit(tmp_path: Path, family: str, head: str) -> None:
    reference = theirs(family, head)
    model = parity.check_round_trip(reference, AUTO[head], tmp_path)
    before = json.loads((tmp_path / "theirs" / "config.json").read_text())
    after = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert "cloze_task" not in after
    if head in NAMED:
        assert after["id2label"] == before["id2label"]
        assert after["label2id"] == before["label2id"]
    opened = AUTO[head].from_pretrained(tmp_path / "ours").eval()
    values = values_of(family, 12, "left" if family == "xlnet" else "right")
    with torch.no_grad():
        expected = answers(reference, values, head)
        torch.testing.assert_close(answers(opened, values, head), expected, atol=1e-6, rtol=0)
    assert model.config.task is not None
    problems = {
        "classify": "single_label_classification",
        "multilabel": "multi_label_classification",
        "regress": "regression",
    }
    assert opened.config.problem_type == problems.get(head)


@pytest.mark.parametrize("head", CLASSES)
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_equal_in_train_mode(tmp_path: Path, family: str, head: str) -> None:
    reference = theirs(family, head, **NO_DROPOUT)
    model = parity.written(reference, tmp_path)
    values = values_of(family, 12, "left" if family == "xlnet" else "right")
    keep = real(head, family, values)
    answers(reference.train(), values, head)[keep].square().mean().backward()
    ours(model.train(), values)[keep].square().mean().backward()
    grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    found = parity.to_their_tensors(model.form, grads, model.config)
    wanted = {n: p.grad for n, p in reference.named_parameters() if p.grad is not None}
    assert found.keys() == wanted.keys()
    if family == "xlnet":  # their table has a gradient at the row of padding
        wanted["transformer.word_embedding.weight"][XLNET["pad_token_id"]] = 0.0
    for name, grad in found.items():
        torch.testing.assert_close(grad, wanted[name], atol=1e-4, rtol=1e-4)


PLACES: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "bert": lambda m, x: m.classifier(m.dropout(m.bert.pooler(x))),
    "roberta": lambda m, x: m.classifier(x),
    "distilbert": lambda m, x: m.classifier(m.dropout(m.pre_classifier(x[:, 0]).relu())),
    "albert": lambda m, x: m.classifier(
        m.dropout(m.albert.pooler_activation(m.albert.pooler(x[:, 0])))
    ),
    "electra": lambda m, x: m.classifier(x),
    "deberta": lambda m, x: m.classifier(m.dropout(m.pooler(x))),
    "deberta-v2": lambda m, x: m.classifier(m.dropout(m.pooler(x))),
    "xlnet": lambda m, x: m.logits_proj(m.sequence_summary(x)),
    "modernbert": lambda m, x: m.classifier(m.drop(m.head(x[:, 0]))),
}
"""What each class does after the encoder."""


@pytest.mark.parametrize("family", FAMILIES)
def test_dropout_stands_where_theirs_stands(tmp_path: Path, family: str) -> None:
    rates = (
        "classifier_dropout",
        "classifier_dropout_prob",
        "cls_dropout",
        "summary_last_dropout",
    )
    rates = ("seq_classif_dropout",) if family == "distilbert" else rates
    reference = theirs(family, "classify", **dict.fromkeys(rates, 0.4)).train()
    head = parity.written(reference, tmp_path).heads["classify"].train()
    hidden = torch.randn(4, 7, 32, generator=torch.Generator().manual_seed(1))
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(3)
        expected = PLACES[family](reference, hidden)
        torch.manual_seed(3)
        found = head(hidden)
        without = head.eval()(hidden)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert float((without - expected).abs().max()) > 0.1


def test_next_sentence_alone(tmp_path: Path) -> None:
    reference = parity.randomised(tf.BertForNextSentencePrediction(tf.BertConfig(**BODY)))
    model = parity.check_round_trip(
        reference, tf.AutoModelForNextSentencePrediction, tmp_path / "round"
    )
    assert list(model.heads) == ["next_sentence"]
    for length, pad in parity.LENGTHS:
        values = values_of("bert", length, pad)
        parity.check_outputs(model, reference, values, {"next_sentence": "logits"})


def test_every_class_of_transformers_is_read_or_known_to_be_left_out() -> None:
    """A new class in a later transformers shows up here."""
    covered: set[str] = set()
    for form in BY_FAMILY.values():
        if not form.in_transformers:
            continue
        covered |= set(form.architectures.values()) | ({form.causal} if form.causal else set())
        tasks = [Task(head=h) for h in ("regress", "span")] + [Task(head="tag", labels=("a",))]
        covered |= {name for task in tasks if (name := form.tasks.architecture(task))}
    stems = "|".join([*(stem for stem, _ in FAMILIES.values()), "EuroBert"])
    pattern = re.compile(rf"({stems})(For[A-Z]\w+|LMHeadModel|Model)")
    known = {name for name in dir(tf) if pattern.fullmatch(name)}
    assert covered <= known
    # a row of several filled-in texts; one text of it is a regress head's input
    choices = {"Bert", "Roberta", "Albert", "Electra", "DebertaV2", "XLNet", "ModernBert"}
    choices.add("DistilBert")
    left_out = {f"{stem}ForMultipleChoice" for stem in choices}
    left_out.add("XLNetForQuestionAnswering")  # a beam over starts, each with its own ends
    assert known - covered == left_out
