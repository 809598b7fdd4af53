"""Reading fields of a foreign config.json with a clear error for each that does not fit."""

from collections.abc import Collection, Mapping
from difflib import SequenceMatcher
from typing import Any

from core_models.config import Config, Rotary
from core_models.errors import InputError

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
"""Their activation names to ours."""


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_READ = names(
    """
    architectures bos_token_id dtype eos_token_id id2label is_decoder label2id model_type num_labels
    pad_token_id problem_type tie_word_embeddings use_cache vocab_size
    """
)
"""Fields that config.json of any model may hold, and that say something of it."""
_HARMLESS = names(
    """
    _attn_implementation _attn_implementation_autoset _attn_implementation_internal _commit_hash
    _name_or_path _num_labels add_cross_attention attn_implementation auto_map bad_words_ids
    begin_suppress_tokens bos_token chunk_size_feed_forward classifier_dropout_prob cls_drop_out
    cls_token cls_token_id cross_attention_hidden_size decoder_start_token_id directionality
    diversity_penalty do_sample down_scale_factor early_stopping embedding_size
    encoder_no_repeat_ngram_size eos_token exponential_decay_length_penalty finetuning_task
    forced_bos_token_id forced_eos_token_id gap_size gradient_checkpointing init init_range init_std
    is_composition is_encoder_decoder language length_penalty mask_token mask_token_id max_length
    max_seq_length min_length name net_structure_type no_repeat_ngram_size num_beam_groups num_beams
    num_memory_blocks num_return_sequences output_attentions output_hidden_states output_past
    output_scores pad_token padding_idx pooler_fc_size pooler_num_attention_heads
    pooler_num_fc_layers pooler_size pooler_size_per_head pooler_type prefix pruned_heads
    quantization_config remove_invalid_values repetition_penalty return_dict return_dict_in_generate
    sep_token sep_token_id seq_length summary_first_dropout summary_hidden_size
    summary_proj_to_labels suppress_tokens task_specific_params temperature tf_legacy_loss
    tie_encoder_decoder tokenizer_class top_k top_p torch_dtype torchscript transformers_version
    typical_p unk_token unk_token_id use_bfloat16 vocab_size_or_config_json_file xla_device
    """
)
"""Others: of transformers' PretrainedConfig in version 2 to 5, and what released files carry."""
_NEAR = 0.85
"""A field that is not known and at least so like a known one is a slip of the pen."""


def check_spelling(values: Mapping[str, Any], own: Collection[str]) -> None:
    """Refuse a field whose name is nearly that of a known one; other unknown ones may stay.

    Args:
        values: config.json.
        own: fields of its model type.

    Raises:
        InputError: with both names.
    """
    known = sorted({*_READ, *own})
    for name in values:
        if name in known or name in _HARMLESS:
            continue
        likeness = {other: SequenceMatcher(None, name.lower(), other).ratio() for other in known}
        nearest = max(known, key=likeness.__getitem__)
        if likeness[nearest] >= _NEAR:
            raise InputError(
                f"config.json has the field {name!r}, which is not known; did you mean "
                f"{nearest!r}? Rename it or leave it out."
            )


def by_one_name(values: Mapping[str, Any], others: Mapping[str, str]) -> dict[str, Any]:
    """config.json with each field under the name that is read here; transformers takes both.

    Args:
        values: config.json.
        others: other name -> the one that is read.

    Raises:
        InputError: a field is there under both names, with different values.
    """
    found = dict(values)
    for other, name in others.items():
        if other in values and found.setdefault(name, values[other]) != values[other]:
            raise InputError(
                f"config.json: {other} is {values[other]!r} and {name} {found[name]!r}, but they "
                "are two names of one field; keep the right one only."
            )
    return found


def unwritable(path: str, value: Any, family: str, allowed: str) -> InputError:
    """The error of a config's value that files of its family cannot hold."""
    return InputError(
        f"{path} is {value!r}, which files of the family {family} cannot hold; allowed is "
        f"{allowed}. Build the model so to save it."
    )


def untied(config: Config) -> bool:
    """Whether pieces are scored by a matrix of the head's own."""
    return config.masked_token_style == "untied"


def their_activation(ours: str) -> str:
    """Their first name of one of our activations."""
    return next(theirs for theirs, found in ACTIVATIONS.items() if found == ours)


def shape_of(config: Config) -> dict[str, Any]:
    """The fields that most classes have under these names."""
    return {
        "vocab_size": config.embeddings.vocabulary,
        "hidden_size": config.width,
        "num_hidden_layers": config.steps,
        "num_attention_heads": config.attention.heads,
        "intermediate_size": config.feed_forward.width,
        "pad_token_id": config.embeddings.pad_id,
        "tie_word_embeddings": not untied(config),
    }


def rotary_of(config: Config) -> Rotary:
    """The config's rotary positions; InputError where it has none, which files cannot say."""
    rotary = config.attention.rotary
    if rotary is None:
        raise unwritable("attention.rotary", None, config.family, "an object")
    return rotary


class Fields:
    """Typed access to a config.json; the key must be present unless a default is given."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number in low..high."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InputError(
                f"config.json: {key} is {value!r}; expected a whole number from {low} to {high}."
            )
        return value

    def width_and_heads(
        self, width: int, heads: int, keys: tuple[str, str] = ("hidden_size", "num_attention_heads")
    ) -> tuple[int, int]:
        """The two fields, or these; the first is a multiple."""
        width = self.integer(keys[0], 1, 16_384, width)
        heads = self.integer(keys[1], 1, 256, heads)
        if width % heads:
            raise InputError(
                f"config.json: {keys[0]} {width} is not a multiple of {keys[1]} {heads}."
            )
        return width, heads

    def pieces(self, vocabulary: int, pad_id: int) -> tuple[int, int]:
        """Rows of the piece table, and the one of padding; these where the fields are absent."""
        vocabulary = self.integer("vocab_size", 1, 2_000_000, vocabulary)
        return vocabulary, self.integer("pad_token_id", 0, vocabulary - 1, pad_id)

    def schedule(self, steps: int, key: str = "num_hidden_layers") -> tuple[int, ...]:
        """As many steps as layers, each a block of its own."""
        return tuple(range(self.integer(key, 1, 512, steps)))

    def theta(self, written: Any, path: str, older: str, default: float) -> float:
        """Base of rotary wavelengths, unscaled.

        Args:
            written: ``rope_parameters`` of transformers 5, or its part for a kind of layers; None =
                absent.
            path: what that is called.
            older: the field of transformers 4.
            default: where neither is there.
        """
        scaling = self.values.get("rope_scaling") or {"rope_type": "default"}
        kind = None
        if isinstance(scaling, Mapping):  # "type" until transformers 4.43
            kind = scaling.get("rope_type", scaling.get("type"))
        if kind != "default":
            raise InputError(
                f"config.json: rope_scaling is {scaling!r}; only unscaled rotary positions are "
                "read. Leave it out."
            )
        own = written or {}
        if not isinstance(own, Mapping) or own.get("rope_type", "default") != "default":
            raise InputError(
                f"config.json: {path} is {own!r}; only an object of rope_type default is supported."
            )
        return Fields(own).number("rope_theta", 1, 1e12, self.number(older, 1, 1e12, default))

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """A number in low..high."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"config.json: {key} is {value!r}; expected a number.")
        if not low <= value <= high:
            raise InputError(f"config.json: {key} is {value}; expected {low} to {high}.")
        return float(value)

    def boolean(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise InputError(f"config.json: {key} is {value!r}; expected true or false.")
        return value

    def scores(self) -> str:
        """What scores pieces: ``tied`` to their table, or ``untied``."""
        return "tied" if self.boolean("tie_word_embeddings", True) else "untied"

    def choice(self, key: str, known: Mapping[str, str]) -> str:
        """Ours for one of their names; where it is absent, for the first of them."""
        value = self.values.get(key, next(iter(known)))
        if not isinstance(value, str) or value not in known:
            raise InputError(f"config.json: {key} is {value!r}; supported are {', '.join(known)}.")
        return known[value]

    def activation(self, key: str) -> str:
        """One of our activation names."""
        return self.choice(key, ACTIVATIONS)

    def fixed(self, key: str, expected: Any) -> None:
        """Refuse a field that is present with another value than the one supported."""
        value = self.values.get(key, expected)
        if value != expected:
            raise InputError(f"config.json: {key} is {value!r}; only {expected!r} is supported.")
