"""Which models of transformers are compared, and what a comparison gives."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from benchmarks.parity_models import VOCABULARY, randomised
from core_models.checkpoints.table import FAMILY_FIELD

TOLERANCE = 1e-5
GRADIENT_TOLERANCE = 1e-4

PLAIN = "no padding"
PADDINGS = {PLAIN: (12, "none"), "right": (12, "right"), "left": (12, "left"), "odd": (13, "right")}
"""Column: (tokens, side of the padding)."""
LONGEST, ROWS, GRADIENTS = "longest", "as rows", "gradients"


@dataclass(frozen=True)
class Figure:
    """One largest difference."""

    family: str
    variation: str
    head: str
    column: str
    fast: float
    traced: float | None = None
    """The same on the written-out path; None where it is not measured apart."""

    @property
    def passes(self) -> bool:
        """Whether every difference is within its tolerance."""
        allowed = GRADIENT_TOLERANCE if self.column == GRADIENTS else TOLERANCE
        return all(x <= allowed for x in (self.fast, self.traced) if x is not None)


def apart(ours: Tensor, theirs: Tensor) -> float:
    """Largest absolute difference; infinite where a figure is not a number."""
    found = float((ours - theirs).abs().max())
    return math.inf if math.isnan(found) else found


@dataclass(frozen=True)
class Case:
    """One random model."""

    family: str
    variation: str
    """What is special about it, in words."""
    cls: str
    """Name of its class in transformers."""
    heads: Mapping[str, str | tuple[str, ...]]
    """Our head -> the attribute of their output that holds its logits; several are put side by side
    on a new last axis."""
    values: Mapping[str, Any] = field(default_factory=dict)
    longest: int = 38
    """Tokens of the longest input."""

    def reference(self) -> Any:
        """Their model, without dropout, in eval mode."""
        import transformers

        cls = getattr(transformers, self.cls)
        values = {"vocab_size": VOCABULARY, **self.values}
        return randomised(cls(cls.config_class(**values)))

    @property
    def name(self) -> str:
        """One word for command lines and errors."""
        return f"{self.family}:{self.variation}:{self.cls}"


_SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_ODD = {
    "hidden_size": 20,
    "num_hidden_layers": 1,
    "num_attention_heads": 5,
    "intermediate_size": 7,
    "hidden_act": "relu",
}
_MASKED = {"masked_token": "logits"}
_NEXT = {"masked_token": "prediction_logits", "next_sentence": "seq_relationship_logits"}
_ORDER = {"masked_token": "prediction_logits", "sentence_order": "seq_relationship_logits"}

_ROBERTA = _SHAPE | {"type_vocab_size": 1, "layer_norm_eps": 1e-5}
_ALBERT = _SHAPE | {"embedding_size": 12, "classifier_dropout_prob": 0.0}
_GROUPS = {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2}
_SOP = {"masked_token": "prediction_logits", "sentence_order": "sop_logits"}
_ELECTRA = _SHAPE | {"embedding_size": 32}
_RELATIVE = _SHAPE | {
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": "c2p|p2c",
    "layer_norm_eps": 1e-7,
    "legacy": False,
}
_BUCKETS = _RELATIVE | {
    "max_position_embeddings": 64,
    "position_buckets": 8,
    "norm_rel_ebd": "layer_norm",
}
_CONVOLUTION = {"share_att_key": True, "conv_kernel_size": 3, "conv_act": "gelu"}
_V3 = _RELATIVE | {
    FAMILY_FIELD: "deberta_v3",
    "architectures": ["DebertaV2ForMaskedLM"],
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
}
_XLNET = {
    "d_model": 32,
    "n_layer": 3,
    "n_head": 4,
    "d_inner": 48,
    "dropout": 0.0,
    "summary_last_dropout": 0.0,
}
_PERMUTATION = {"permutation": "logits"}
_DISTIL = {
    "dim": 32,
    "n_layers": 3,
    "n_heads": 4,
    "hidden_dim": 48,
    "max_position_embeddings": 40,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "qa_dropout": 0.0,
    "seq_classif_dropout": 0.0,
}
_MODERN = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "local_attention": 6,
    "pad_token_id": 0,
}

_EUROPEAN = {
    "classifier_pooling": "bos",
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 40,
    "pad_token_id": 0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 250_000.0},
}

_UNTIED = {"tie_word_embeddings": False}
_NARROW = _RELATIVE | _UNTIED | {"legacy": True, "embedding_size": 12}
_SQUARE = _ALBERT | _UNTIED | {"embedding_size": 32}
_VARIANTS = {
    "untied": [
        ("bert", "BertForPreTraining", _NEXT, _SHAPE | _UNTIED),
        ("roberta", "RobertaForMaskedLM", _MASKED, _ROBERTA | _UNTIED),
        ("distilbert", "DistilBertForMaskedLM", _MASKED, _DISTIL | _UNTIED),
        ("electra", "ElectraForMaskedLM", _MASKED, _ELECTRA | _UNTIED),
        ("modernbert", "ModernBertForMaskedLM", _MASKED, _MODERN | _UNTIED),
    ],
    "untied, square projection": [("albert", "AlbertForPreTraining", _SOP, _SQUARE)],
    "untied, narrow tables": [("deberta", "DebertaForMaskedLM", _MASKED, _NARROW)],
    "c2p": [("deberta", "DebertaForMaskedLM", _MASKED, _RELATIVE | {"pos_att_type": "c2p"})],
    "p2c": [("deberta_v2", "DebertaV2ForMaskedLM", _MASKED, _BUCKETS | {"pos_att_type": "p2c"})],
    "no terms": [("deberta", "DebertaForMaskedLM", _MASKED, _SHAPE | {"legacy": False})],
}
"""What no released file has and transformers allows."""

_START_AND_END = {"span": ("start_logits", "end_logits")}
_BODIES: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "bert": ("Bert", "QuestionAnswering", _SHAPE),
    "roberta": ("Roberta", "QuestionAnswering", _ROBERTA),
    "albert": ("Albert", "QuestionAnswering", _ALBERT),
    "spanbert": ("Bert", "QuestionAnswering", _SHAPE | {FAMILY_FIELD: "spanbert"}),
    "macbert": ("Bert", "QuestionAnswering", _SHAPE | {FAMILY_FIELD: "macbert"}),
    "electra": ("Electra", "QuestionAnswering", _ELECTRA),
    "deberta": ("Deberta", "QuestionAnswering", _RELATIVE | {"max_relative_positions": 6}),
    "deberta_v2": ("DebertaV2", "QuestionAnswering", _BUCKETS | _CONVOLUTION),
    "deberta_v3": ("DebertaV2", "QuestionAnswering", _V3),
    "xlnet": ("XLNet", "QuestionAnsweringSimple", _XLNET),
    "distilbert": ("DistilBert", "QuestionAnswering", _DISTIL),
    "modernbert": ("ModernBert", "QuestionAnswering", _MODERN),
    "eurobert": ("EuroBert", None, _EUROPEAN),
}
"""What fine-tuned models are made of: stem of the class names, class for answers (None = there is
none), values."""


def _fine_tuned(family: str) -> tuple[Case, ...]:
    stem, answering, values = _BODIES[family]
    body = {name: value for name, value in values.items() if name != "architectures"}
    found = (
        Case(
            family,
            "fine-tuned",
            f"{stem}ForSequenceClassification",
            {"classify": "logits"},
            body | {"num_labels": 3},
        ),
        Case(
            family,
            "fine-tuned",
            f"{stem}ForSequenceClassification",
            {"multilabel": "logits"},
            body | {"num_labels": 3, "problem_type": "multi_label_classification"},
        ),
        Case(
            family,
            "fine-tuned",
            f"{stem}ForSequenceClassification",
            {"regress": "logits"},
            body | {"num_labels": 1},
        ),
        Case(
            family,
            "fine-tuned",
            f"{stem}ForTokenClassification",
            {"tag": "logits"},
            body | {"num_labels": 5},
        ),
    )
    if answering is None:
        return found
    return (*found, Case(family, "fine-tuned", f"{stem}For{answering}", _START_AND_END, body))


CASES = (
    Case("bert", "3 steps", "BertForPreTraining", _NEXT, _SHAPE),
    Case("bert", "1 step, 5 heads, relu", "BertForPreTraining", _NEXT, _SHAPE | _ODD),
    Case("bert", "one head", "BertForMaskedLM", _MASKED, _SHAPE),
    Case(
        "bert",
        "left to right",
        "BertLMHeadModel",
        {"causal": "logits"},
        _SHAPE | {"is_decoder": True},
    ),
    Case("roberta", "3 steps", "RobertaForMaskedLM", _MASKED, _ROBERTA),
    Case("roberta", "1 step, 5 heads, relu", "RobertaForMaskedLM", _MASKED, _ROBERTA | _ODD),
    Case(
        "roberta",
        "left to right",
        "RobertaForCausalLM",
        {"causal": "logits"},
        _ROBERTA | {"is_decoder": True},
    ),
    Case("distilbert", "3 steps", "DistilBertForMaskedLM", _MASKED, _DISTIL),
    Case("albert", "one shared block", "AlbertForPreTraining", _SOP, _ALBERT),
    Case("albert", "two groups of two", "AlbertForPreTraining", _SOP, _ALBERT | _GROUPS),
    Case("albert", "wide tables", "AlbertForPreTraining", _SOP, _ALBERT | {"embedding_size": 40}),
    Case("spanbert", "3 steps", "BertForMaskedLM", _MASKED, _SHAPE | {FAMILY_FIELD: "spanbert"}),
    Case("macbert", "3 steps", "BertForPreTraining", _ORDER, _SHAPE | {FAMILY_FIELD: "macbert"}),
    Case(
        "electra", "discriminator", "ElectraForPreTraining", {"replaced_token": "logits"}, _ELECTRA
    ),
    Case("electra", "generator", "ElectraForMaskedLM", _MASKED, _ELECTRA | {"embedding_size": 48}),
    Case(
        "electra", "narrow tables", "ElectraForMaskedLM", _MASKED, _ELECTRA | {"embedding_size": 12}
    ),
    Case(
        "electra",
        "left to right",
        "ElectraForCausalLM",
        {"causal": "logits"},
        _ELECTRA | {"is_decoder": True},
    ),
    Case(
        "deberta",
        "span 200",
        "DebertaForMaskedLM",
        _MASKED,
        _RELATIVE | {"max_position_embeddings": 200},
        250,
    ),
    Case(
        "deberta",
        "span 6",
        "DebertaForMaskedLM",
        _MASKED,
        _RELATIVE | {"max_relative_positions": 6},
        150,
    ),
    Case(
        "deberta", "segments", "DebertaForMaskedLM", _MASKED, _RELATIVE | {"type_vocab_size": 2}, 90
    ),
    Case(
        "deberta_v2",
        "8 buckets, shared projections",
        "DebertaV2ForMaskedLM",
        _MASKED,
        _BUCKETS | {"share_att_key": True},
        150,
    ),
    Case("deberta_v2", "own projections", "DebertaV2ForMaskedLM", _MASKED, _BUCKETS, 150),
    Case(
        "deberta_v2", "convolution", "DebertaV2ForMaskedLM", _MASKED, _BUCKETS | _CONVOLUTION, 150
    ),
    Case("deberta_v3", "256 buckets", "DebertaV2ForMaskedLM", _MASKED, _V3, 300),
    Case("xlnet", "3 steps", "XLNetLMHeadModel", _PERMUTATION, _XLNET, 150),
    Case("modernbert", "window of 3", "ModernBertForMaskedLM", _MASKED, _MODERN, 150),
    Case(
        "modernbert",
        "window of 64",
        "ModernBertForMaskedLM",
        _MASKED,
        _MODERN | {"local_attention": 128},
        600,
    ),
    Case(
        "modernbert",
        "biases, swiglu, layers of one kind",
        "ModernBertForMaskedLM",
        _MASKED,
        _MODERN
        | {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True}
        | {"hidden_activation": "silu", "global_attn_every_n_layers": 1},
        150,
    ),
    Case("eurobert", "a key for each query", "EuroBertForMaskedLM", _MASKED, _EUROPEAN, 150),
    Case(
        "eurobert",
        "groups of three",
        "EuroBertForMaskedLM",
        _MASKED,
        _EUROPEAN | {"num_key_value_heads": 2},
        150,
    ),
    *(Case(c[0], name, *c[1:]) for name, cases in _VARIANTS.items() for c in cases),
    *(case for family in _BODIES for case in _fine_tuned(family)),
)
"""Every family and every head that transformers has."""


def xlnet(**values: Any) -> Case:
    """An XLNet that remembers."""
    return Case("xlnet", "memory", "XLNetLMHeadModel", _PERMUTATION, _XLNET | values)
