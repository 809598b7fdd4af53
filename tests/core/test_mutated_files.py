"""Files of models, tokenizers and token stores that were changed at random: read or refused."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import core_models as cm
from core_models.data import TokenStore, build_store
from core_models.tokenizer import Tokenizer
from core_models.training import durable
from tests.core.tiny_models import new, tiny, tokenizer
from tests.gate import Gate
from tests.mutations import VALUES, spoil, typed

SENTENCES = ["The cat sat on the mat.", "A dog ran over the hill.", "我们去北京 today 3.14!"] * 3
FAMILIES = ("bert-mini", "xlnet-base-cased", "deberta-v3-base", "electra-small-discriminator")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, dict[str, bytes]]:
    """Files of small models; one in pieces with an index."""
    found = {}
    for name in FAMILIES:
        folder = tmp_path_factory.mktemp("model")
        with pytest.MonkeyPatch.context() as patch:
            if name == FAMILIES[0]:
                patch.setattr("core_models.checkpoints.files.SHARD_BYTES", 4000)
            new(tiny(name)).save(folder)
        found[name] = contents(folder)
    return found


def test_mutated_checkpoints(
    gate: Gate, checkpoints: Mapping[str, dict[str, bytes]], tmp_path: Path
) -> None:
    for draw in gate.cases(60, 10_000):
        family = draw.choice(FAMILIES)
        folder = tmp_path / family
        folder.mkdir(exist_ok=True)
        spoil(folder, draw, checkpoints[family])

        def read(folder: Path = folder) -> None:
            model = cm.load(folder)
            model.encode(["the cat [MASK]"])

        typed(read)


def test_mutated_configs(
    gate: Gate, checkpoints: Mapping[str, dict[str, bytes]], tmp_path: Path
) -> None:
    """Every field of a config, and those that it does not write, with every odd value."""
    for draw in gate.cases(100, 2_000):
        family = draw.choice(FAMILIES)
        values = json.loads(checkpoints[family]["config.json"])
        for _ in range(draw.choice((1, 1, 2, 3))):
            values[draw.choice(sorted(values))] = draw.choice(VALUES)
        folder = tmp_path / family
        folder.mkdir(exist_ok=True)
        for name, raw in checkpoints[family].items():
            (folder / name).write_bytes(raw)
        (folder / "config.json").write_text(json.dumps(values))
        typed(lambda folder=folder: cm.load(folder))


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, dict[str, bytes]]:
    """Files of a tokenizer of each kind, and the older files from which some are read."""
    found: dict[str, dict[str, bytes]] = {}
    for kind in ("wordpiece", "byte_bpe", "unigram"):
        folder = tmp_path_factory.mktemp("tokenizer")
        made = Tokenizer.train(SENTENCES, vocabulary=280, kind=kind)
        made.save(folder)
        found[kind] = contents(folder)
    older = {n: raw for n, raw in found["wordpiece"].items() if n != "tokenizer.json"}
    pieces = _pieces(found["wordpiece"]["tokenizer.json"])
    found["vocab.txt"] = older | {"vocab.txt": "\n".join(pieces).encode()}
    model = json.loads(found["byte_bpe"]["tokenizer.json"])["model"]
    merges = [" ".join(m) if isinstance(m, list) else m for m in model["merges"]]
    older = {n: raw for n, raw in found["byte_bpe"].items() if n != "tokenizer.json"}
    found["merges.txt"] = older | {
        "vocab.json": json.dumps(model["vocab"]).encode(),
        "merges.txt": "\n".join(["#version: 0.2", *merges]).encode(),
    }
    found["spiece.model"] = {"spiece.model": _sentence_piece()}
    return found


def _pieces(definition: bytes) -> list[str]:
    vocabulary = json.loads(definition)["model"]["vocab"]
    return sorted(vocabulary, key=vocabulary.get)


def _sentence_piece() -> bytes:
    import io

    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 5),
        model_writer=written,
        vocab_size=60,
        hard_vocab_limit=False,
        control_symbols=["[CLS]", "[SEP]"],
        user_defined_symbols=["[MASK]"],
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        pad_piece="<pad>",
        minloglevel=2,
    )
    return written.getvalue()


def test_mutated_tokenizers(
    gate: Gate, vocabularies: Mapping[str, dict[str, bytes]], tmp_path: Path
) -> None:
    for draw in gate.cases(120, 8_000):
        kind = draw.choice(sorted(vocabularies))
        folder = tmp_path / kind
        folder.mkdir(exist_ok=True)
        spoil(folder, draw, vocabularies[kind])

        def read(folder: Path = folder) -> None:
            found = Tokenizer.from_folder(folder)
            for text in ("a cat sat [MASK].", "我们 🙂 \u0301"):
                encoded = found.encode(text, "two")
                found.decode(encoded.ids)
                [found.display(each) for each in encoded.ids]

        typed(read)


def test_the_unspoiled_ones_are_read(
    checkpoints: Mapping[str, dict[str, bytes]],
    vocabularies: Mapping[str, dict[str, bytes]],
    tmp_path: Path,
) -> None:
    """Else the gates above would look at nothing."""
    reads: dict[str, Callable[[Path], Any]] = dict.fromkeys(checkpoints, cm.load)
    reads |= dict.fromkeys(vocabularies, Tokenizer.from_folder)
    for name, read in reads.items():
        (tmp_path / name).mkdir()
        for each, raw in {**checkpoints, **vocabularies}[name].items():
            (tmp_path / name / each).write_bytes(raw)
        read(tmp_path / name)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data as a run keeps it: a store and the list of its files."""
    folder = tmp_path_factory.mktemp("text")
    documents = ["\n".join([f"the {'cat ' * n}ran.", *SENTENCES[:3]]) for n in range(30)]
    (folder / "a.txt").write_text("\n\n".join(documents))

    def build(into: Path) -> None:
        values = {"format": "next_sentence", "max_length": 40, "held_out": 0.2}
        build_store(into / "store", folder / "a.txt", tokenizer(), **values)
        for path in (into / "store").iterdir():
            path.rename(into / path.name)
        (into / "store").rmdir()

    durable.write_folder(folder / "data", build)
    return folder / "data"


def test_mutated_stores(gate: Gate, prepared: Path, tmp_path: Path) -> None:
    """A store opens or is refused; whatever changed in it, its list of files tells."""
    whole = contents(prepared)
    for draw in gate.cases(60, 4_000):
        name = spoil(tmp_path, draw, whole)
        typed(lambda: TokenStore.open(tmp_path, tokenizer=tokenizer()))
        if name != durable.MANIFEST:
            changed = (tmp_path / name).read_bytes() != whole[name]
            assert (durable.verify(tmp_path) is not None) is changed, name
