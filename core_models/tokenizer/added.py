"""Pieces that were added to a vocabulary later, where the files beside it name them.

A tokenizer.json lists them itself; beside vocab.txt, merges.txt or a file of SentencePiece's they
stand in added_tokens.json, or with their rules in tokenizer_config.json.
"""

from collections.abc import Mapping
from typing import Any

import tokenizers
from tokenizers import AddedToken

from core_models.config.check import MOST_PIECES
from core_models.errors import InputError
from core_models.tokenizer.files import CONFIG_FILE, specials_from

LIST_FILE = "added_tokens.json"
_KEY = "added_tokens_decoder"
_FLAGS = ("lstrip", "rstrip", "normalized", "single_word", "special")
_BESIDE = ("additional_special_tokens", "extra_special_tokens")
"""Fields of special pieces that have no role here: a list, or in the newer one names to pieces."""


def declare(
    backend: tokenizers.Tokenizer, settings: Mapping[str, Any], listed: Mapping[str, Any]
) -> None:
    """Add the pieces, in the order of their ids; the five special pieces stay as they are.

    Args:
        backend: Changed in place.
        settings: The content of tokenizer_config.json and special_tokens_map.json; its
            ``added_tokens_decoder`` counts where there is one.
        listed: The content of added_tokens.json: piece to id. Empty = there is none.

    Raises:
        InputError: An entry is no piece with an id, or the id is not the next free one.
    """
    pieces = _described(settings[_KEY]) if settings.get(_KEY) else _plain(listed, settings)
    if not pieces:
        return
    vocabulary = backend.get_vocab(with_added_tokens=True)
    if len(pieces) + len(vocabulary) > MOST_PIECES:
        raise InputError(f"{len(pieces):,} pieces are added; allowed are {MOST_PIECES:,} in all.")
    named = specials_from(settings, vocabulary | {p.content: i for i, p in pieces}).names()
    for index, piece in sorted(pieces, key=lambda entry: entry[0]):
        if piece.content not in named or piece.content not in vocabulary:
            (backend.add_special_tokens if piece.special else backend.add_tokens)([piece])
        if (given := backend.token_to_id(piece.content)) != index:
            raise InputError(
                f"The files of the tokenizer give the added piece {piece.content!r} the id "
                f"{index}; behind the vocabulary it has {given}. A file of the vocabulary may be "
                "cut short; or save the tokenizer as tokenizer.json."
            )


def declare_named(backend: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> None:
    """Make special pieces of those of the vocabulary that the settings name as such.

    A text's "[unused0]" is then one piece, as in transformers. What the vocabulary lacks is passed
    over: the model has no row for it.

    Args:
        backend: Changed in place.
        settings: The content of tokenizer_config.json and special_tokens_map.json.
    """
    known = {piece.content for piece in backend.get_added_tokens_decoder().values()}
    new = {piece: flags for piece, flags in _named(settings).items() if piece not in known}
    if new:
        vocabulary = backend.get_vocab(with_added_tokens=False)
        pieces = [AddedToken(piece, **flags) for piece, flags in new.items() if piece in vocabulary]
        backend.add_special_tokens(pieces)


def _named(settings: Mapping[str, Any]) -> dict[str, dict[str, bool]]:
    """Special pieces that the settings name, for a role or beside those, with their flags."""
    found: dict[str, dict[str, bool]] = {}
    for key, value in settings.items():
        several: Any = [value] if key.endswith("_token") else []
        if key in _BESIDE:
            several = [*value.values()] if isinstance(value, Mapping) else value
        for named in several if isinstance(several, list) else ():
            rules = named if isinstance(named, Mapping) else {"content": named}
            flags = {name: rules[name] for name in _FLAGS if isinstance(rules.get(name), bool)}
            if isinstance(piece := rules.get("content"), str) and piece:
                found[piece] = {"normalized": False, **flags, "special": True}
    return found


def _described(entries: object) -> list[tuple[int, AddedToken]]:
    found = []
    for key, rules in _mapping(entries, f"{CONFIG_FILE}: {_KEY}").items():
        rules = _mapping(rules, f"{CONFIG_FILE}: {_KEY}[{key!r}]")
        flags = {name: rules[name] for name in _FLAGS if name in rules}
        if not (key.isdecimal() and len(key) < 10) or not all(
            isinstance(flag, bool) for flag in flags.values()
        ):
            raise InputError(
                f"{CONFIG_FILE}: {_KEY}[{key!r}] is {dict(rules)!r}; expected an id, and for it "
                f"the piece as content with {', '.join(_FLAGS)} as true or false."
            )
        found.append((int(key), AddedToken(_content(rules.get("content"), CONFIG_FILE), **flags)))
    return found


def _plain(listed: Mapping[str, Any], settings: Mapping[str, Any]) -> list[tuple[int, AddedToken]]:
    """As transformers takes a list without rules: special is what is named so elsewhere."""
    special = _named(settings)
    found = []
    for piece, index in listed.items():
        if isinstance(index, bool) or not isinstance(index, int):
            raise InputError(f"{LIST_FILE}: {piece!r} has the id {index!r}; expected a number.")
        known = piece in special
        added = AddedToken(_content(piece, LIST_FILE), special=known, normalized=not known)
        found.append((index, added))
    return found


def _content(piece: object, name: str) -> str:
    if not isinstance(piece, str) or not piece:
        raise InputError(f"{name}: an added piece is {piece!r}; expected text.")
    return piece


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{what} is a {type(value).__name__}; expected a JSON object.")
    return value
