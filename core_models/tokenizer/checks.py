"""What a tokenizer's files may say."""

from collections.abc import Mapping
from typing import Any

import tokenizers

from core_models.config_check import MOST_PIECES
from core_models.errors import InputError
from core_models.tokenizer.files import CONFIG_FILE, FIRST, SECOND, TOKENIZER_FILE, Template

MOST_SEGMENTS = 64


def vocabulary_of(backend: tokenizers.Tokenizer) -> dict[str, int]:
    """Piece to id, added pieces included.

    Asked for before anything else: the library writes a file with a far id for half a minute.

    Raises:
        InputError: There are no pieces, or an id is beyond what a model's table can have.
    """
    if not backend.get_vocab(with_added_tokens=False):
        raise InputError(f"{TOKENIZER_FILE}: model.vocab is empty; it must list the pieces.")
    vocabulary = backend.get_vocab(with_added_tokens=True)
    piece = max(vocabulary, key=vocabulary.__getitem__)
    if vocabulary[piece] >= MOST_PIECES:
        raise InputError(
            f"{TOKENIZER_FILE}: the piece {piece!r} has the id {vocabulary[piece]}; allowed is 0 "
            f"to {MOST_PIECES - 1}, and less than the rows of the model's table."
        )
    return vocabulary


def check_template(template: Template, vocabulary: Mapping[str, int]) -> None:
    """Refuse a template with a special piece that the vocabulary lacks."""
    for slot in (*template.single, *template.pair):
        if slot.content not in {FIRST, SECOND} and slot.content not in vocabulary:
            raise InputError(
                f"{TOKENIZER_FILE}: the post_processor adds the piece {slot.content!r}, which is "
                "not in the vocabulary; add it there."
            )


def pad_left(settings: Mapping[str, Any]) -> bool | None:
    """Whether padding goes to the left, from tokenizer_config.json; None = it does not say."""
    side = settings.get("padding_side")
    if side is not None and side != "left" and side != "right":
        raise InputError(f"{CONFIG_FILE}: padding_side is {side!r}; expected left or right.")
    return None if side is None else side == "left"


def pad_segment(settings: Mapping[str, Any]) -> int | None:
    """Segment id of padding, from tokenizer_config.json; None = it does not say."""
    if "pad_token_type_id" not in settings:
        return None
    value = settings["pad_token_type_id"]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_SEGMENTS:
        raise InputError(
            f"{CONFIG_FILE}: pad_token_type_id is {value!r}; expected a whole number from 0 to "
            f"{MOST_SEGMENTS - 1}."
        )
    return value
