"""What a run's data folder holds."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.data.corpus import Corpus
from core_models.data.store import TokenStore
from core_models.errors import InputError
from core_models.tokenizer import Tokenizer
from core_models.training import settings, streams
from core_models.training.folder import RunFolder
from core_models.training.plan import plan_for
from core_models.training.prepare import _Cutter, prepare
from tests.training.conftest import text

Toy = Callable[..., dict[str, Any]]


def test_a_document_that_is_left_alone_by_singles_is_a_single_too(toy: Toy) -> None:
    """Pairs need two documents; its text would be lost."""
    tokenizer = Tokenizer.train([text(9)], vocabulary=120)
    corpus = Corpus.from_ids([[[5, 6], [7, 8]], [[9, 10], [11]], [[12], [13]]])
    data = toy()["data"] | {"singles": 0.5}
    for seed in range(12):
        values = settings.parse(toy(data=data, objectives={"next_sentence": 1.0}, seed=seed))
        plan = plan_for(values, cm.size("bert-mini"))
        found = list(_Cutter(corpus, values, plan, tokenizer).examples(range(3), 1, "train", 24))
        runs = [range(a, b) for e in found for a, b in ((e[0], e[1]), (e[2], e[3]))]
        assert {piece for run in runs for piece in run} == set(range(len(corpus.tokens)))


def test_training_only_texts_are_never_held_out(tmp_path: Path, toy: Toy) -> None:
    (tmp_path / "text.txt").write_text(text(40))
    (tmp_path / "more.txt").write_text("zebra zebra zebra.\n\n" * 10)
    plain, more = RunFolder(tmp_path / "plain"), RunFolder(tmp_path / "more")
    for run, extra in ((plain, []), (more, ["../more.txt"])):
        data = toy()["data"] | {"texts": ["../text.txt"], "training_only": extra}
        run.path.mkdir()
        run.config_path.write_text(json.dumps(toy(data=data)))
        values = settings.read(run.config_path)
        prepare(run, values, plan_for(values, cm.size("bert-mini")))
    facts = [json.loads((r.data_path / "prepared.json").read_text()) for r in (plain, more)]
    assert facts[1]["documents"] == facts[0]["documents"] + 10
    assert facts[1]["held_out_documents"] == facts[0]["held_out_documents"]
    held = [TokenStore.open(r.data_path / "store", "held_out") for r in (plain, more)]
    words = [Tokenizer.from_folder(r.data_path / "tokenizer") for r in (plain, more)]
    said = [
        {w.decode(row.tolist()) for row in s.batch(range(len(s))).input_ids}
        for s, w in zip(held, words, strict=True)
    ]
    assert not any("zebra" in line for line in said[1])


def test_how_batches_are_cut_needs_no_text_anew(tmp_path: Path, toy: Toy) -> None:
    run = RunFolder(tmp_path)
    (tmp_path / "text.txt").write_text(text(40))
    for even in (False, True):
        data = toy()["data"] | {"texts": ["text.txt"], "even": even}
        run.config_path.write_text(json.dumps(toy(data=data)))
        values = settings.read(run.config_path)
        assert values.data.even == even
        prepare(run, values, plan_for(values, cm.size("bert-mini")))
        (tmp_path / "text.txt").unlink(missing_ok=True)


def test_shorter_examples_of_the_same_documents_are_cut_where_a_run_begins_with_them(
    tmp_path: Path, toy: Toy
) -> None:
    (tmp_path / "text.txt").write_text(text(40))
    run = RunFolder(tmp_path)
    plain = toy()["data"] | {"texts": ["text.txt"]}
    run.config_path.write_text(json.dumps(toy(data=plain)))
    values = settings.read(run.config_path)
    plan = plan_for(values, cm.size("bert-mini"))
    whole = prepare(run, values, plan)
    assert whole.first is None
    assert (
        "first_length"
        not in json.loads((run.data_path / "prepared.json").read_text())["ingredients"]["data"]
    ), "a folder from before it existed is still that of this run"
    values = values.model_copy(update={"data": values.data.model_copy(update={"first_length": 12})})
    found = prepare(run, values, plan)
    assert found.first is not None
    assert found.training.lengths.tolist() == whole.training.lengths.tolist()
    assert found.first.lengths.max() <= 12 < found.training.lengths.max()
    assert found.first.corpus.num_documents == found.training.corpus.num_documents
    read = {tuple(e[:2]) for e in map(found.first.example, range(len(found.first)))}
    last = found.training.corpus.bounds(found.facts["documents"] - 1)[-1]
    assert max(stop for _, stop in read) <= last, "nothing that is held out"


def test_a_batch_that_grows_reads_the_same_examples_in_another_order(
    tmp_path: Path, toy: Toy
) -> None:
    (tmp_path / "text.txt").write_text(text(40))
    run = RunFolder(tmp_path)
    data = toy()["data"] | {"texts": ["text.txt"], "bucketing": 1, "first_batch": 4}
    run.config_path.write_text(json.dumps(toy(data=data | {"first_share": 0.2}, steps=10)))
    values = settings.read(run.config_path)
    found, masker, _ = streams.open_data(run, values, None)
    assert found.first is None
    stream = streams.open_stream(found, masker, values, torch.device("cpu"))
    batches = [stream.draw().batch.input_ids for _ in range(4)]
    assert [len(ids) for ids in batches] == [4, 4, 16, 16]
    alone = values.model_copy(update={"data": values.data.model_copy(update={"first_batch": None})})
    stream = streams.open_stream(found, masker, alone, torch.device("cpu"))
    assert not torch.equal(stream.draw().batch.input_ids, batches[2])


def _order_pairs(folder: Path, toy: Toy, text: str, **more: Any) -> TokenStore:
    """Training examples of a run for sentence order over one text."""
    folder.mkdir()
    (folder / "text.txt").write_text(text)
    data = (
        toy()["data"]
        | {"texts": ["text.txt"], "held_out": 0.0, "duplicates": 4, "singles": 0.0}
        | more
    )
    objectives = {"masked_token": 1.0, "sentence_order": 1.0}
    run = RunFolder(folder)
    run.config_path.write_text(json.dumps(toy(data=data, objectives=objectives)))
    values = settings.read(run.config_path)
    prepare(run, values, plan_for(values, cm.size("bert-mini")))
    return TokenStore.open(run.data_path / "store", "train")


def test_lone_sentences_teach_order_only_where_the_released_code_is_asked_for(
    tmp_path: Path, toy: Toy
) -> None:
    text = "the cat sees a dog.\nthe dog sees a cat.\n\n" * 40 + "a lone sentence.\n\n" * 40
    paper = _order_pairs(tmp_path / "paper", toy, text)
    released = _order_pairs(tmp_path / "released", toy, text, random_for_lone=True)
    labels = [store.batch(range(len(store))).pair_labels.tolist() for store in (paper, released)]
    assert len(labels[0]) < len(labels[1])
    assert 0.35 < sum(labels[0]) / len(labels[0]) < 0.65
    assert sum(labels[1]) / len(labels[1]) > 0.65, "lone sentences are all called swapped"


def test_order_is_learnt_from_parts_of_as_many_sentences(tmp_path: Path, toy: Toy) -> None:
    text = "the cat.\nthe dog sees a cat and a dog.\nthe cat.\n\n" * 40
    equal = _order_pairs(tmp_path / "equal", toy, text, order_sentences=1)
    released = _order_pairs(tmp_path / "released", toy, text)
    pieces = [store.batch(range(len(store))).input_ids.shape[1] for store in (equal, released)]
    assert pieces[0] < pieces[1], "the third sentence has no partner"


def test_text_without_neighbours_is_refused_for_order(tmp_path: Path, toy: Toy) -> None:
    with pytest.raises(InputError, match="two sentences"):
        _order_pairs(tmp_path / "run", toy, "a lone sentence.\n\n" * 40)
