"""config.json of a type that is not ours: what it says, and what is refused before all else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core_models.checkpoints.files import CONFIG, read_json
from core_models.checkpoints.formats import FORMATS
from core_models.config import Attention, Embeddings, FeedForward, ForeignConfig, Masking
from core_models.errors import InputError
from core_models.foreign.lock import transformers

CODE = "auto_map"


def is_foreign(values: Mapping[str, Any]) -> bool:
    """Whether a config.json is of a type that our own formats do not have."""
    return isinstance(values.get("model_type"), str) and values["model_type"] not in FORMATS


def read_config(folder: Path) -> tuple[Any, ForeignConfig]:
    """Their config and ours of a model folder.

    Raises:
        InputError: the type is none that has masked tokens and an encoder alone, or a value does
            not go.
    """
    values = read_json(folder / CONFIG)
    refuse_code(values, CONFIG)
    kind = check_kind(values)
    with transformers() as library:
        try:
            theirs = library.AutoConfig.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # validators of any kind
            raise InputError(
                f"config.json: transformers {library.__version__} cannot read it as {kind} "
                f"({type(error).__name__}); save the model again with that version."
            ) from None
    return theirs, ours(theirs)


def refuse_code(values: Mapping[str, Any], name: str) -> None:
    """InputError for a file that names Python files of its own to be run.

    Not where a type of ours has released files that do: what reads them is ours.
    """
    kind = values.get("model_type")
    ours = isinstance(kind, str) and kind in FORMATS and FORMATS[kind].brought_code
    if values.get(CODE) and not ours:
        raise InputError(
            f"{name} names code of its own ({CODE}), which is never run here. Choose a model whose "
            "class is part of transformers."
        )


def check_kind(values: Mapping[str, Any]) -> str:
    """The type of a config.json that is not ours.

    Raises:
        InputError: transformers has no encoder of this type that predicts hidden tokens.
    """
    kind = str(values.get("model_type"))[:64]
    with transformers() as library:
        from transformers.models.auto import modeling_auto as auto  # noqa: PLC0415

        if kind not in library.CONFIG_MAPPING:
            raise InputError(
                f"config.json: model_type is {kind!r}, which neither this program (it has "
                f"{', '.join(FORMATS)}) nor transformers {library.__version__} knows."
            )
        default = getattr(library.CONFIG_MAPPING[kind], "is_encoder_decoder", False)
        written = kind in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
        masked = kind in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
        leftward = kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if written or values.get("is_encoder_decoder", default):
        raise InputError(
            f"A model of type {kind} reads with an encoder and writes with a decoder (sequence to "
            "sequence), so it fills no gaps of a text. Choose an encoder such as BERT, RoBERTa, "
            "DistilBERT or ESM."
        )
    if values.get("is_decoder") or (leftward and not masked):
        raise InputError(
            f"A model of type {kind} is a decoder here: it reads from left to right, so no gap is "
            "filled from both sides. Choose an encoder such as BERT, RoBERTa, DistilBERT or ESM."
        )
    if not masked:
        raise InputError(
            f"A model of type {kind} was not made to predict hidden tokens of a text. Choose an "
            "encoder such as BERT, RoBERTa, DistilBERT or ESM."
        )
    if values.get("quantization_config"):
        raise InputError(
            "config.json: quantization_config is set, and quantized weights are not read; give "
            "the model in float32, float16 or bfloat16."
        )
    return kind


def ours(theirs: Any) -> ForeignConfig:
    """Their config in our words; a :class:`ForeignEncoder` completes it by what it finds."""
    width, layers = _whole(theirs, "hidden_size"), _whole(theirs, "num_hidden_layers")
    heads = _whole(theirs, "num_attention_heads", 1)
    if layers > 512:  # before a schedule is made of it
        raise InputError(f"config.json: num_hidden_layers is {layers}; allowed is 1 to 512.")
    inner = [getattr(theirs, key, None) for key in ("intermediate_size", "hidden_dim")]
    acts = [getattr(theirs, key, None) for key in ("hidden_act", "hidden_activation", "activation")]
    vocabulary, pad = _whole(theirs, "vocab_size"), getattr(theirs, "pad_token_id", None)
    return ForeignConfig(
        family=theirs.model_type,
        embeddings=Embeddings(
            vocabulary=vocabulary,
            width=_whole(theirs, "embedding_size", width),
            positions=None,
            segments=_whole(theirs, "type_vocab_size", 0),
            pad_id=pad if isinstance(pad, int) and 0 <= pad < vocabulary else 0,
        ),
        width=width,
        attention=Attention(heads=heads, head_width=max(1, width // max(1, heads))),
        feed_forward=FeedForward(
            width=next((n for n in inner if isinstance(n, int)), 4 * width),
            activation=next((str(a) for a in acts if a is not None), "gelu"),
        ),
        schedule=tuple(range(layers)),
        objectives=("masked_token",),
        masking=Masking(),
    )


def _whole(theirs: Any, key: str, default: int | None = None) -> int:
    value = getattr(theirs, key, None)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"config.json: {key} is {value!r}; expected a whole number.")
    return value
