"""Files of SentencePiece's, against that library and what the released code does before it."""

import io
import json
import unicodedata
from pathlib import Path

import pytest
import sentencepiece
import torch

import core_models as cm
from core_models import InputError
from core_models.prediction import fill
from core_models.tokenizer import Tokenizer, sentence_piece
from tests.core.tiny_models import narrow

PRIMER = Path(__file__).resolve().parents[2] / "assets" / "primer"
NUMBERED = [
    f'It cost {n},{n * 37 % 1000:03d} crowns in {1900 + n % 100}, and {n} more, (a) "fine" – price.'
    for n in range(150)
]
ODD = [
    "  Naïve   café\tcosts 1,234,567 dollars ``now'' .",
    "ＦＵＬＬ width ① ﬁne \u00a0 Ⅳ ½ ™ Å",
    "漢字 unknown ☃☃ x",
    "U.S.A. (1,000-2,000) – £5 €6 12,000, 9,",
    "a ''b'' Hello,world",
    "x" * 50,
]
CONTROL = {
    "albert": "[CLS],[SEP],[MASK]",
    "xlnet": "<cls>,<sep>,<pad>,<mask>,<eod>",
    "deberta": "",
}
SIGNS = '(,),",-,.,–,£,€'
NAMED = {
    "albert": {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "user_defined_symbols": SIGNS},
    "xlnet": {"unk_id": 0, "bos_id": 1, "eos_id": 2, "user_defined_symbols": f"<eop>,{SIGNS}"},
    "deberta": {
        **{"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3},
        **{"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"},
    },
}
"""The special pieces of the released files."""
FILES = {"albert": "spiece.model", "xlnet": "spiece.model", "deberta": "spm.model"}


def sentences() -> list[str]:
    lines = [line for path in sorted(PRIMER.glob("english-*.txt")) for line in path.open()]
    return [line.strip() for line in lines if line.strip()][:500] + NUMBERED


def learn(**options: object) -> bytes:
    """A model as SentencePiece writes it."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences()),
        model_writer=written,
        vocab_size=options.pop("vocab_size", 400),
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return written.getvalue()


@pytest.fixture(scope="module")
def models() -> dict[str, bytes]:
    return {name: learn(control_symbols=CONTROL[name], **NAMED[name]) for name in FILES}


def cleaned(text: str, family: str) -> str:
    """What the released code does before (albert/tokenization.py, xlnet/prepro_utils.py)."""
    if family == "deberta":
        return text
    text = " ".join(text.split()).replace("``", '"').replace("''", '"')
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return text.lower() if family == "albert" else text


def released(model: bytes, text: str, family: str) -> list[int]:
    """Ids as the released code finds them: "9," is cut once more, without its comma."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    found: list[str] = []
    for piece in processor.encode(cleaned(text, family), out_type=str):
        if family != "deberta" and len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            again = processor.encode(piece[:-1].replace("▁", ""), out_type=str)
            if piece[0] != "▁" and again[0][0] == "▁":
                again = again[1:] if len(again[0]) == 1 else [again[0][1:], *again[1:]]
            found += [*again, ","]
        else:
            found.append(piece)
    return [processor.piece_to_id(piece) for piece in found]


@pytest.mark.parametrize("family", list(FILES))
def test_pieces_are_those_of_the_released_code(family, models, tmp_path):
    (tmp_path / FILES[family]).write_bytes(models[family])
    tokenizer = Tokenizer.from_folder(tmp_path)
    for text in [*sentences()[::5], *NUMBERED[::9], *ODD]:
        ids = list(tokenizer.encode(text, max_length=4000).ids)
        inner = [i for i in ids if i not in (tokenizer.cls_id, tokenizer.sep_id)]
        assert inner == released(models[family], text, family), text


def test_numbers_and_signs_are_learnt_as_the_test_above_needs_them(models):
    """Otherwise its rules were never asked for."""
    for model in models.values():
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        pieces = [processor.id_to_piece(n) for n in range(processor.get_piece_size())]
        assert any(len(p) > 1 and p[-1] == "," and p[-2].isdigit() for p in pieces)


@pytest.mark.parametrize(
    ("family", "special", "pair"),
    [
        ("albert", (0, 1, 2, 3, 4), "[CLS] ▁a [SEP] ▁a [SEP]"),
        ("xlnet", (5, 0, 3, 4, 6), "▁a <sep> ▁a <sep> <cls>"),
        ("deberta", (0, 3, 1, 2, 400), "[CLS] ▁a [SEP] ▁a [SEP]"),
    ],
)
def test_special_pieces_are_where_the_family_has_them(family, special, pair, models, tmp_path):
    (tmp_path / FILES[family]).write_bytes(models[family])
    own = Tokenizer.from_folder(tmp_path)
    assert (own.pad_id, own.unknown_id, own.cls_id, own.sep_id, own.mask_id) == special
    assert own.encode("a", "a").pieces == pair.split()
    assert own.template.pad_left == (family == "xlnet")
    hidden = own.encode("a [MASK]. a")
    at = hidden.ids.index(own.mask_id)
    assert [*hidden.pieces[at + 1 : at + 3]] == [".", "▁a"]


@pytest.mark.parametrize("family", list(FILES))
def test_a_saved_folder_opens_with_the_same_pieces(family, models, tmp_path):
    transformers = pytest.importorskip("transformers")
    (tmp_path / FILES[family]).write_bytes(models[family])
    own = Tokenizer.from_folder(tmp_path)
    own.save(tmp_path / "saved")
    again = Tokenizer.from_folder(tmp_path / "saved")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert again.fingerprint == own.fingerprint
    for text in [*sentences()[:40], *ODD[:4]]:
        assert again.encode(text).ids == own.encode(text).ids == theirs(text)["input_ids"]


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("add_dummy_prefix", "it cost 9 crowns"),
        ("add_dummy_prefix", "  it   cost 9 crowns  "),
        ("remove_extra_whitespaces", "it   cost 9 crowns  "),
    ],
)
def test_blanks_are_kept_or_added_as_the_file_says(option, text, tmp_path):
    model = learn(**NAMED["deberta"], **{option: False})
    (tmp_path / "spm.model").write_bytes(model)
    ids = [*Tokenizer.from_folder(tmp_path).encode(text).ids][1:-1]
    assert ids == released(model, text, "deberta")


def test_pieces_that_are_out_of_use_are_never_chosen(models, tmp_path):
    changed = sentence_piece._schema()()
    changed.ParseFromString(models["deberta"])
    (piece,) = (piece for piece in changed.pieces if piece.piece == "▁the")
    piece.type = sentence_piece._Type.UNUSED
    model = changed.SerializeToString()
    (tmp_path / "spm.model").write_bytes(model)
    found = Tokenizer.from_folder(tmp_path).encode("see the sea")
    assert "▁the" not in found.pieces
    assert [*found.ids][1:-1] == released(model, "see the sea", "deberta")


def test_control_pieces_are_no_text(models, tmp_path):
    (tmp_path / "spiece.model").write_bytes(models["xlnet"])
    own = Tokenizer.from_folder(tmp_path)
    ids = own.encode("it cost").ids
    assert own.decode([own.id("<eod>"), *ids]) == own.decode(ids) == "it cost"


def test_marks_are_split_off_where_the_settings_say_so(models, tmp_path):
    (tmp_path / "spm.model").write_bytes(models["deberta"])
    usual = Tokenizer.from_folder(tmp_path)
    assert any("," in piece[1:] for text in NUMBERED[:40] for piece in usual.encode(text).pieces)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"split_by_punct": True}))
    apart = Tokenizer.from_folder(tmp_path)
    for text in NUMBERED[:40]:
        pieces = apart.encode(text).pieces
        assert all(len(p) == 1 or "," not in p for p in pieces), pieces


def test_what_the_settings_say_counts(models, tmp_path):
    (tmp_path / "spiece.model").write_bytes(models["albert"])
    assert "▁it" in Tokenizer.from_folder(tmp_path).encode("It cost").pieces
    settings = {"do_lower_case": False, "keep_accents": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    cased = Tokenizer.from_folder(tmp_path)
    assert "▁it" not in cased.encode("It cost").pieces
    assert cased.encode("é").ids != cased.encode("e").ids


def test_bytes_stand_for_unknown_letters_where_the_file_has_them(tmp_path):
    model = learn(byte_fallback=True, vocab_size=700, **NAMED["deberta"])
    (tmp_path / "spm.model").write_bytes(model)
    own = Tokenizer.from_folder(tmp_path)
    ids = [*own.encode("snow ☃ 漢").ids][1:-1]
    assert ids == released(model, "snow ☃ 漢", "deberta")
    assert own.unknown_id not in ids


def test_files_of_others_are_refused(models, tmp_path, monkeypatch):
    path = tmp_path / "spm.model"

    def refused(content: bytes, words: str) -> None:
        path.write_bytes(content)
        with pytest.raises(InputError, match=words):
            Tokenizer.from_folder(tmp_path)

    refused(learn(), "special pieces of no family known here")
    refused(learn(model_type="bpe", **NAMED["deberta"]), "no unigram model")
    refused(b"", "no pieces")
    refused(models["deberta"][:1000], "spm.model is not")
    refused(b"\x80\x04pickled" * 9, "spm.model is not")
    twice = sentence_piece._schema()()
    twice.ParseFromString(models["deberta"])
    twice.pieces.append(twice.pieces[-1])
    refused(twice.SerializeToString(), "stands there twice")
    twice.pieces[-1].piece, twice.pieces[-1].score = "new", float("nan")
    refused(twice.SerializeToString(), "no number")
    twice.pieces[-1].score, twice.pieces[-1].type = 0.0, sentence_piece._Type.UNKNOWN
    refused(twice.SerializeToString(), "2 of its pieces stand for what is unknown")
    twice.pieces[-1].type = sentence_piece._Type.NORMAL
    for table in (b"torn", b"\x04\0\0\0abcd"):  # the second makes the library panic
        twice.normalizer_spec.precompiled_charsmap = table
        refused(twice.SerializeToString(), "table of characters")
    monkeypatch.setattr(sentence_piece, "_MOST_BYTES", 100)
    refused(models["deberta"], "at most 100")


def test_a_released_folder_has_nothing_else(models, tmp_path):
    """As microsoft/deberta-v3-base lies on the hub: spm.model, two settings, and a larger table."""
    (tmp_path / "spm.model").write_bytes(models["deberta"])
    settings = {"do_lower_case": False, "vocab_type": "spm"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = Tokenizer.from_folder(tmp_path)
    config = cm.size("deberta-v3-small").with_vocabulary(tokenizer.vocabulary + 27)
    config = narrow(config, width=32, inner=64)
    seed = torch.Generator().manual_seed(0)
    model = cm.Model.new(config, tokenizer, heads=["masked_token"], generator=seed).eval()
    model.save(tmp_path / "saved")
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tmp_path / "saved" / name).read_bytes())
    found = cm.load(tmp_path)
    text = "The [MASK] cost 1,200 crowns."
    assert fill(found, text).predictions == fill(model, text).predictions


def test_a_piece_that_is_no_text_is_refused(models, tmp_path):
    assert "\u2581the".encode() in models["deberta"]
    spoilt = models["deberta"].replace("\u2581the".encode(), b"\xff\xffethe", 1)
    (tmp_path / "spm.model").write_bytes(spoilt)
    with pytest.raises(InputError, match="a piece is no valid text"):
        Tokenizer.from_folder(tmp_path)


def test_entity_markers_beside_the_file_are_pieces(models, tmp_path):
    """DeBERTa's mask is the first piece behind the file; what others added comes after it."""
    (tmp_path / "spm.model").write_bytes(models["deberta"])
    plain = Tokenizer.from_folder(tmp_path)
    listed = {"[MASK]": 400, "[E1]": 401, "[/E1]": 402}
    (tmp_path / "added_tokens.json").write_text(json.dumps(listed))
    marked = Tokenizer.from_folder(tmp_path)
    assert [p for p in marked.encode("it [E1] cost [/E1] 9").pieces if "E1" in p] == [
        "[E1]",
        "[/E1]",
    ]
    assert marked.mask_id == 400
    assert marked.encode("it [MASK].").ids == plain.encode("it [MASK].").ids
