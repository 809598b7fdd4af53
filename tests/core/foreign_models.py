"""Tiny random models of transformers' own classes, saved by transformers."""

from pathlib import Path
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForMaskedLM

from tests.core.tiny_models import tokenizer

TEXT = "the red fox sees a [MASK] dog"
_SIZE = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
}
_OWN: dict[str, dict[str, Any]] = {
    "mpnet": {},
    "esm": {"mask_token_id": 4, "position_embedding_type": "rotary", "token_dropout": True},
    "roformer": {"embedding_size": 8},
    "convbert": {"embedding_size": 8},
    "mobilebert": {
        "embedding_size": 8,
        "intra_bottleneck_size": 8,
        "true_hidden_size": 8,
        "num_feedforward_networks": 2,
    },
    "rembert": {"input_embedding_size": 8, "output_embedding_size": 12},
    "megatron-bert": {},
    "data2vec-text": {},
    "fnet": {},
    "yoso": {},
    "nystromformer": {"num_landmarks": 4, "segment_means_seq_len": 40},
    "longformer": {"attention_window": 8},
    "xlm": {"emb_dim": 16, "n_layers": 3, "n_heads": 4},
}
WHOLE = (
    "mpnet",
    "esm",
    "roformer",
    "convbert",
    "mobilebert",
    "rembert",
)
WHOLE += ("megatron-bert", "data2vec-text")
"""Types of which everything is seen."""
BLIND = ("fnet", "yoso")
"""Types without attention, or with attention of another kind."""
UNFIT = ("nystromformer", "longformer", "xlm")
"""Types that need a fixed length, run over padded tokens, or are not built of layers."""


def reference(kind: str) -> Any:
    """A random model of transformers in eval mode, with weights large enough to matter."""
    values = {**_SIZE, **_OWN[kind], "vocab_size": tokenizer().vocabulary}
    torch.manual_seed(sum(map(ord, kind)))
    config = CONFIG_MAPPING[kind](**values)
    model = AutoModelForMaskedLM.from_config(config, attn_implementation="eager").eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0.0, 0.3)
    return model


def saved(kind: str, folder: Path) -> Any:
    """The reference, in a folder with a tokenizer."""
    model = reference(kind)
    model.save_pretrained(folder)
    tokenizer().save(folder)
    return model
