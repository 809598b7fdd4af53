"""Vocabularies as the newer encoders have them: ids as transformers gives them."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer

import core_models as cm

TEXTS = ["The red fox sees the small dog.", "A dog likes the old house.", "Birds sing."] * 20


def write(folder: Path, made: tokenizers.Tokenizer, first: str, end: str, names: dict[str, Any]):
    """tokenizer.json and tokenizer_config.json as the released ones."""
    ids = [(name, made.token_to_id(name)) for name in (first, end)]
    made.post_processor = TemplateProcessing(
        single=f"{first} $A {end}", pair=f"{first} $A {end} $B {end}", special_tokens=ids
    )
    made.save(str(folder / "tokenizer.json"))
    settings = names | {
        "cls_token": first,
        "sep_token": end,
        "model_input_names": ["input_ids", "attention_mask"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def modernbert(folder: Path) -> None:
    """Byte-level BPE; the mask piece takes the blank before it; runs of blanks are one piece."""
    made = tokenizers.Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<|padding|>"], initial_alphabet=alphabet
        ),
    )
    made.add_tokens([AddedToken("  ", normalized=True)])
    specials = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    made.add_special_tokens([*specials, AddedToken("[MASK]", lstrip=True, special=True)])
    names = {"mask_token": "[MASK]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    write(folder, made, "[CLS]", "[SEP]", names)


def mmbert(folder: Path) -> None:
    """BPE with bytes for what it does not know, as Gemma's; specials in angles."""
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Replace(" ", "\u2581")
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    replaced = decoders.Replace("\u2581", " ")
    made.decoder = decoders.Sequence([replaced, decoders.ByteFallback(), decoders.Fuse()])
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    spelled = [f"<0x{n:02X}>" for n in range(256)]
    made.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=400, special_tokens=[*specials, *spelled])
    )
    names = {"mask_token": "<mask>", "pad_token": "<pad>", "unk_token": "<unk>"}
    write(folder, made, "<bos>", "<eos>", names)


def eurobert(folder: Path) -> None:
    """Llama's byte-level BPE: names of a decoder's pieces, no unknown one, padding is the end."""
    made = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
    words = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(words), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    first, end = "<|begin_of_text|>", "<|end_of_text|>"
    made.add_special_tokens([first, end, AddedToken("<|mask|>", lstrip=True, special=True)])
    names = {"bos_token": first, "eos_token": end, "pad_token": end, "mask_token": "<|mask|>"}
    write(folder, made, first, end, names)
    path = folder / "tokenizer_config.json"
    kept = {n: v for n, v in json.loads(path.read_text()).items() if n[:3] not in ("cls", "sep")}
    path.write_text(json.dumps(kept))


def test_a_decoders_names_stand_for_ours(tmp_path: Path) -> None:
    eurobert(tmp_path)
    found = cm.Tokenizer.from_folder(tmp_path)
    first, end, _ = found.specials.cls, found.specials.sep, found.specials.mask
    assert (first, end) == ("<|begin_of_text|>", "<|end_of_text|>")
    assert found.specials.pad == found.specials.unknown == end
    found.save(tmp_path / "again")
    again = cm.Tokenizer.from_folder(tmp_path / "again")
    assert again.specials == found.specials
    assert again.encode(TEXTS[0]).ids == found.encode(TEXTS[0]).ids


def test_words_of_gemmas_rules_begin_at_their_blanks(tmp_path: Path) -> None:
    """They make signs of blanks first, and part nothing then."""
    pieces = [
        "<pad>",
        "<eos>",
        "<bos>",
        "<unk>",
        "<mask>",
        *"\u2581thedrfox,",
        "\u2581r",
        "\u2581f",
    ]
    merges = [("\u2581", "r"), ("\u2581", "f")]
    vocabulary = {piece: n for n, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>"))
    made.normalizer = normalizers.Replace(" ", "\u2581")
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    names = {"mask_token": "<mask>", "pad_token": "<pad>", "unk_token": "<unk>"}
    write(tmp_path, made, "<bos>", "<eos>", names)
    words = cm.Tokenizer.from_folder(tmp_path)
    found = words.encode("the red, fox")
    assert found.pieces[1:-1] == [*"the", "\u2581r", *"ed", ",", "\u2581f", *"ox"]
    assert found.words[1:-1] == [0, 0, 0, 1, 1, 1, 2, 3, 3, 3]
    ((_, starts),) = words.encode_plain(["the red, fox"])
    assert starts.sum() == 4
    red = [found.ids[found.pieces.index("\u2581r")], *map(words.id, "ed")]
    assert words.pieces_of("red") == red
    assert words.pieces_of(",") == [words.id(",")]


@pytest.mark.parametrize("make", [modernbert, mmbert, eurobert])
def test_ids_are_those_of_transformers(tmp_path: Path, make: Any) -> None:
    make(tmp_path)
    ours, theirs = cm.Tokenizer.from_folder(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    mask = ours.specials.mask
    for text in (*TEXTS[:3], f"The red {mask} sees.", f"The  old{mask}  house", "caf\u00e9 \u72d0"):
        assert ours.encode(text).ids == theirs(text)["input_ids"]
        pair = ours.encode(text, "Birds sing.")
        assert pair.ids == theirs(text, "Birds sing.")["input_ids"]
        assert set(pair.segment_ids) == {0}
    assert ours.encode(f"The {mask} sings").ids.count(ours.mask_id) == 1
