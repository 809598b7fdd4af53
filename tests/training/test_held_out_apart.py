"""What a run is measured on it has not read, however often its texts say the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import core_models as cm
from core_models.data import documents
from core_models.data.store import TokenStore
from core_models.errors import InputError
from core_models.tokenizer import Tokenizer
from core_models.training import race_measure, race_schema, settings
from core_models.training.folder import RunFolder
from core_models.training.plan import plan_for
from core_models.training.prepare import prepare
from tests.training.conftest import text

Toy = Callable[..., dict[str, Any]]
ONCE = text(24)
REPEATED = text(8) + "\n\n" + ONCE + "\n\n" + text(8).upper().replace(" ", "  ")
"""The first eight documents stand there three times, once in capitals and with wide blanks."""


def prepared(folder: Path, toy: Toy, **data: Any) -> RunFolder:
    """A run's folder with its data; files are those of ``folder``, under ``name.txt``."""
    run = RunFolder(folder / "run")
    run.path.mkdir()
    wanted = toy()["data"] | {"texts": ["../text.txt"], "singles": 1.0} | data
    objectives = {"masked_token": 1.0}
    run.config_path.write_text(json.dumps(toy(data=wanted, objectives=objectives)))
    options = settings.read(run.config_path)
    prepare(run, options, plan_for(options, cm.size("bert-mini")))
    return run


def sentences(run: RunFolder, split: str) -> set[str]:
    """Every sentence of a split."""
    store = TokenStore.open(run.data_path / "store", split)
    words = Tokenizer.from_folder(run.data_path / "tokenizer")
    said = [words.decode(row.tolist()) for row in store.batch(range(len(store))).input_ids]
    return {s.replace("[PAD]", "").strip() for line in said for s in line.split(".")} - {""}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_repeated_documents_are_not_parted(tmp_path: Path, toy: Toy, seed: int) -> None:
    (tmp_path / "text.txt").write_text(REPEATED)
    texts = list(documents.read([tmp_path / "text.txt"]))
    assert len(texts) == 40
    plain, held_plain = documents.split_held_out(len(texts), 0.3, seed)
    told = [documents.content(t) for t in texts]
    assert {told[i] for i in plain} & {told[i] for i in held_plain}, "would have been parted"
    chosen, held = documents.split_texts(texts, 0.3, seed)
    assert not {told[i] for i in chosen} & {told[i] for i in held}


def test_a_run_and_a_race_hold_out_the_same(tmp_path: Path, toy: Toy) -> None:
    (tmp_path / "text.txt").write_text(REPEATED)
    run = prepared(tmp_path, toy, held_out=0.3)
    held = sentences(run, "held_out")
    assert not held & sentences(run, "train")
    race = race_schema.parse(
        {
            "entrants": [{"name": n, "size": "bert-mini"} for n in ("a", "b")],
            "budget": {"steps": 2},
            "data": {"texts": ["text.txt"], "held_out": 0.3, "max_length": 24},
            "seed": toy().get("seed", 1),
        }
    )
    asked = {w.sentence for w in race_measure.held_out_words(race, tmp_path)}
    assert {s.lower().replace("  ", " ").rstrip(".") for s in asked} <= held


def test_texts_without_repeats_are_parted_as_ever(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(ONCE)
    texts = list(documents.read([tmp_path / "text.txt"]))
    for share in (0.0, 0.05, 0.3, 0.5):
        for seed in (1, 2, 3):
            expected = documents.split_held_out(len(texts), share, seed)
            assert documents.split_texts(texts, share, seed) == expected


@pytest.mark.parametrize(
    "data", [{"training_only": ["../more.txt"]}, {"held_out_texts": ["../more.txt"]}]
)
def test_other_files_cannot_bring_in_what_is_measured_on(
    tmp_path: Path, toy: Toy, data: dict[str, Any]
) -> None:
    """More text to train on holds what is held out here, or text to measure on what is read."""
    (tmp_path / "text.txt").write_text(ONCE)
    (tmp_path / "more.txt").write_text(ONCE if "training_only" in data else text(5))
    run = prepared(tmp_path, toy, held_out=0.2, **data)
    held = sentences(run, "held_out")
    assert held
    assert not held & sentences(run, "train")
    assert "are held out, too" in (run.path / "log.txt").read_text()


def test_texts_that_leave_nothing_to_train_on_are_refused(tmp_path: Path, toy: Toy) -> None:
    (tmp_path / "text.txt").write_text(ONCE)
    (tmp_path / "same.txt").write_text("The same.\n\n" * 30)
    with pytest.raises(InputError, match="30 documents are repeats of 1"):
        prepared(tmp_path, toy, texts=["../same.txt"])
    other = tmp_path / "other"
    other.mkdir()
    (other / "text.txt").write_text(ONCE)
    with pytest.raises(InputError, match="of 24 documents 24 are held out, too"):
        prepared(other, toy, held_out=0.0, held_out_texts=["../../text.txt"])
