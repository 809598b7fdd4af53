"""RoBERTa's files: RobertaModel, RobertaForMaskedLM, RobertaForCausalLM, and two other names.

XLM-R and CamemBERT are RoBERTa's models under class names of their own; what is saved of them is a
RoBERTa, which opens in transformers with the same numbers.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core_models.checkpoints import bert
from core_models.checkpoints.fields import Fields
from core_models.checkpoints.table import Format, Ignored, Row, Scores, counter, tied, twin
from core_models.checkpoints.tasks import POOLED, TaskFiles
from core_models.config import Config
from core_models.families.roberta import ROBERTA_BASE

_DEFAULTS = {"vocab_size": 50265, "pad_token_id": 1}
"""Where RobertaConfig's defaults are not BertConfig's."""
_VOCABULARY = 30522
"""Default of XLMRobertaConfig and CamembertConfig."""


def read_config(values: Mapping[str, Any]) -> Config:
    """RobertaConfig's fields; absent ones take RobertaConfig's defaults."""
    fields = Fields(values)
    config = bert.read_config({**_DEFAULTS, **values})
    first = config.embeddings.pad_id + 1
    fields.integer("max_position_embeddings", first + 1, 1_000_000, 512)
    return replace(
        config,
        family=ROBERTA_BASE.family,
        embeddings=replace(config.embeddings, first_position=first),
        objectives=ROBERTA_BASE.objectives,
        masking=ROBERTA_BASE.masking,
        # their head uses gelu whatever hidden_act says
        head_activation=None if config.feed_forward.activation == "gelu" else "gelu",
    )


FORMAT = Format(
    model_type="roberta",
    architectures={("masked_token",): "RobertaForMaskedLM", (): "RobertaModel"},
    rows=(
        *bert.embedding_rows("roberta.embeddings."),
        *bert.block_rows("roberta.encoder.layer.{n}."),
        Row("lm_head.dense.*", "heads.masked_token.dense.*"),
        Row("lm_head.layer_norm.*", "heads.masked_token.norm.*"),
        Row("lm_head.bias", "heads.masked_token.decoder.bias"),
    ),
    ignored=(
        tied("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"),
        twin("lm_head.decoder.bias", "lm_head.bias"),
        Ignored("roberta.pooler.dense.*", "no objective ever trained it", kept=True),
        counter("roberta.embeddings.position_ids"),
    ),
    read_config=read_config,
    write_config=bert.write_config,
    tasks=TaskFiles(
        stem="Roberta",
        dense="classifier.dense.*",
        classifier="classifier.out_proj.*",
        style=replace(POOLED, dropout_before=True),
    ),
    scores=Scores("lm_head.decoder.*", "lm_head.bias"),
    causal="RobertaForCausalLM",
    fields=bert.FIELDS,
    prefix="roberta.",
)


def _by_another_name(model_type: str, stem: str) -> Format:
    """A class of transformers that is RoBERTa's, with RoBERTa's names of tensors."""

    def read_config_of(values: Mapping[str, Any]) -> Config:
        return read_config({"vocab_size": _VOCABULARY, **values})

    return replace(
        FORMAT,
        model_type=model_type,
        read_config=read_config_of,
        tasks=replace(FORMAT.tasks, stem=stem),
        causal=f"{stem}ForCausalLM",
    )


XLM_ROBERTA = _by_another_name("xlm-roberta", "XLMRoberta")
"""XLM-R (arXiv 1911.02116): RoBERTa over 100 languages and a vocabulary of 250,002 pieces."""
CAMEMBERT = _by_another_name("camembert", "Camembert")
"""CamemBERT (arXiv 1911.03894): RoBERTa over French and a vocabulary of 32,005 pieces."""
