"""The tokenizer of a folder as transformers reads it, behind our own."""

from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import Regex, models, pre_tokenizers

from core_models.errors import InputError
from core_models.foreign.config import refuse_code
from core_models.foreign.lock import transformers
from core_models.tokenizer import Tokenizer, checks, reading
from core_models.tokenizer.files import CONFIG_FILE, Specials, Template, add_specials


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer that transformers' AutoTokenizer finds in a folder.

    Where its class is written in Python and cuts a text into single characters (ESM), the same is
    done here.

    Raises:
        InputError: it cannot be read, or not without Python code of its own.
    """
    checks.check_files(folder)
    settings = reading.read_settings(folder)
    refuse_code(settings, CONFIG_FILE)
    with transformers() as library:
        try:
            found = library.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # of any kind, by what a file holds
            raise InputError(
                f"transformers cannot read the tokenizer in {folder.name} "
                f"({type(error).__name__}). For work with ids leave it out: cm.load(folder, "
                "tokenizer=False)."
            ) from None
        named = _specials(found)
        backend = _backend(found, named)
        settings |= named
        settings |= {"padding_side": found.padding_side}
    return Tokenizer(backend, settings)


def _specials(found: Any) -> dict[str, str]:
    """Special pieces by role; a class that ends texts with one of another name means the same."""
    names = {
        "pad_token": found.pad_token,
        "unk_token": found.unk_token or found.pad_token,  # byte-level: nothing is unknown
        "cls_token": found.cls_token or found.bos_token,
        "sep_token": found.sep_token or found.eos_token,
        "mask_token": found.mask_token,
    }
    for role, name in names.items():
        if name is None:
            raise InputError(
                f"The tokenizer has no {role} ({type(found).__name__}), so texts cannot be asked "
                "here. For work with ids leave it out: cm.load(folder, tokenizer=False)."
            )
    return {role: str(name) for role, name in names.items()}


def _backend(found: Any, named: dict[str, str]) -> tokenizers.Tokenizer:
    backend = getattr(found, "backend_tokenizer", None)
    try:
        if backend is not None:
            return tokenizers.Tokenizer.from_str(backend.to_str())
    except Exception:  # the library raises bare Exception: a part in Python cannot be written
        backend = None
    vocabulary: dict[str, int] = found.get_vocab()
    if any(len(piece) > 1 and piece[:1] != "<" for piece in vocabulary):
        raise InputError(
            f"The tokenizer {type(found).__name__} is written in Python and cannot be run here. "
            "For work with ids leave it out: cm.load(folder, tokenizer=False)."
        )
    specials = Specials(
        pad=named["pad_token"],
        unknown=named["unk_token"],
        cls=named["cls_token"],
        sep=named["sep_token"],
        mask=named["mask_token"],
    )
    return _characters(vocabulary, specials)


def _characters(vocabulary: dict[str, int], specials: Specials) -> tokenizers.Tokenizer:
    """A tokenizer of which every character is a piece and a word."""
    made = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=specials.unknown))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex("."), "isolated")]
    )
    add_specials(made, specials)
    made.post_processor = Template.enclosing(specials).processor(made)
    return made
