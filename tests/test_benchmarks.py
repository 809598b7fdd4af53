"""The benchmarks run, compare equal models, and find their place in the document."""

import argparse
import importlib
import sys

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import core_models as cm
from benchmarks import forward, long, mutants, report, training
from benchmarks.measure import command, interleaved, median_ratio, percentile
from core_models.counting.flops import flops

BATCH = training.random_batch(2, 16)


def test_forward_measures_the_same_model_twice(monkeypatch):
    monkeypatch.setattr(forward, "SHAPES", {"mini": (2, 64)})
    monkeypatch.setattr(forward, "TRAINING", (2, 8))
    arguments = ["--size", "mini", "--family", "albert", "--lengths", "8", "--seconds", "0"]
    found = forward.measure(forward.build_parser().parse_args(arguments))
    inference, step = found.figures
    assert inference["difference"] < forward.TOLERANCE
    assert (inference["family"], inference["rows"], inference["rounds"]) == ("albert", 1, 10)
    assert {"ratio", "against_bert", "packed"} <= set(inference)
    assert (step["pass"], step["rows"], step["length"]) == ("training", 2, 8)
    assert "| albert | 2 x 8, training |" in found.to_markdown()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["modernbert", "distilbert", "eurobert", "neobert"])
def test_forward_measures_the_newer_families(monkeypatch, family):
    monkeypatch.setattr(forward, "SHAPES", {"mini": (4, 64)})
    arguments = ["--size", "mini", "--family", family, "--lengths", "8", "150", "--seconds", "0"]
    found = forward.measure(forward.build_parser().parse_args([*arguments, "--no-training"]))
    assert [(figure["family"], figure["length"]) for figure in found.figures] == [
        (family, 8),
        (family, 150),
    ]
    assert all(figure["difference"] < forward.TOLERANCE for figure in found.figures)


def test_forward_measures_published_shapes(monkeypatch):
    monkeypatch.setattr(forward, "PUBLISHED", ("ettin-encoder-17m", "neobert"))
    arguments = ["--size", "published", "--family", "modernbert", "--lengths", "8"]
    found = forward.measure(
        forward.build_parser().parse_args([*arguments, "--seconds", "0", "--no-training"])
    )
    (figure,) = found.figures
    assert (figure["family"], figure["size"]) == ("ettin-encoder-17m, 7 of 256", "published")
    assert figure["difference"] < forward.TOLERANCE


def test_a_family_keeps_the_proportion_of_its_inner_width():
    widths = {
        name: forward.shaped(forward.FAMILIES[name], forward.SHAPES["mini"]).feed_forward.width
        for name in ("bert", "modernbert", "eurobert", "neobert")
    }
    assert widths == {"bert": 1024, "modernbert": 384, "eurobert": 1024, "neobert": 680}
    assert forward.shaped("mmbert-small").feed_forward.width == 1152


def test_forward_refuses_other_weights():
    pair = forward.same_weights(forward.shaped("bert-base-uncased", (6, 256)))
    with torch.no_grad():
        pair.ours.blocks[3].feed_forward.up.weight.mul_(1.5)
    with pytest.raises(RuntimeError, match="not the same model"):
        forward.difference(pair, forward.drawn_ids(1, 9))


@pytest.mark.slow
def test_training_measures_the_same_model_twice(monkeypatch):
    monkeypatch.setitem(training.SIDE, "cpu", 64)
    arguments = ["--size", "bert-2x128", "--batch-size", "2", "--length", "16", "--seconds", "0"]
    found = training.measure(training.build_parser().parse_args([*arguments, "--bf16"]))
    assert all(figure["ours"] > 0 for figure in found.figures)
    kinds = [figure["kind"] for figure in found.figures]
    assert kinds == ["fp32", training.WHOLE, "bf16", "bf16, dropout 0.1", "bf16, AdamW not fused"]
    for figure in found.figures:
        whole = figure["kind"] == training.WHOLE
        config = cm.size("bert-2x128").with_vocabulary(8192)
        spent = training.step_flops(config, BATCH, whole=whole)
        assert figure["flops_per_second"] == pytest.approx(spent * figure["ours"] / 32)


def test_the_operations_of_a_training_step():
    config = cm.size("bert-2x128").with_vocabulary(training.VOCABULARY).with_dropout(0.0)
    step = training.our_step(config, BATCH)
    with FlopCounterMode(display=False) as counter:
        step()
    read = BATCH.labels != training.IGNORED
    read[:, 0] = True
    last = int(read.sum(1).max()) / 16  # of the second of two layers
    # Fused on a CPU, where it is not counted.
    attention = 3 * 2 * flops(config, 16).attention * (1 + last) / 2
    assert counter.get_total_flops() == training.step_flops(config, BATCH) - attention


def test_different_models_are_not_compared():
    with pytest.raises(RuntimeError, match="not the same model"):
        training.check_equal({"ours": 9.0, "theirs": 9.1})


def test_contestants_run_in_alternating_order():
    order: list[str] = []
    times = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, seconds=0)
    assert "".join(order[6:14]) == "abbaabba"  # after three warm-up runs each
    assert len(times["a"]) == len(times["b"]) == 10


def test_percentile_is_the_nearest_rank():
    values = [float(n) for n in range(40, 0, -1)]
    assert percentile(values, 0.5) == 20
    assert percentile(values, 0.95) == 38
    assert percentile([7.0], 0.95) == 7


def test_ratio_is_taken_round_by_round():
    assert median_ratio([1.0, 10.0, 3.0], [2.0, 20.0, 3.0]) == 0.5


def test_printed_commands_are_those_that_were_run():
    given = {
        "forward": "--size mini base --lengths 8 --no-training --threads 1",
        "hall": "--visitors 0 --pages 1000 --alone",
        "labs": "--tab forge",
        "learning": "--steps 5 --only a",
        "long": "--size neobert --seconds 1.0",
        "mutants": "--only lock",
        "overview": "",
        "page": "--model bert-base-uncased --during-run",
        "trainer": "--precisions fp32",
        "training": "--batch-size 2 --bf16",
    }
    for name, words in given.items():
        parser = importlib.import_module(f"benchmarks.{name}").build_parser()
        asked = parser.parse_args(words.split())
        printed = command(parser, asked)
        assert printed.startswith(f"python -m benchmarks.{name}")
        assert parser.parse_args(printed.split()[3:]) == asked
        assert len(printed.split()) == 3 + len(words.split())


def test_each_part_is_measured_with_the_threads_of_the_machine(monkeypatch, tmp_path):
    seen = []

    class Part:
        @staticmethod
        def build_parser():
            return argparse.ArgumentParser(prog="part")

        @staticmethod
        def measure(_):
            seen.append(torch.get_num_threads())
            torch.set_num_threads(1)
            return report.Report([], [])

    before = torch.get_num_threads()
    document = tmp_path / "benchmarks.md"
    document.write_text("".join(f"<!-- {n}: begin --><!-- {n}: end -->" for n in ("one", "two")))
    monkeypatch.setattr(report, "DOCUMENT", document)
    monkeypatch.setattr(report, "BENCHMARKS", {"one": ("a", []), "two": ("a", [])})
    monkeypatch.setattr(report.importlib, "import_module", lambda _: Part)
    monkeypatch.setattr(sys, "argv", ["report"])
    torch.set_num_threads(3)
    try:
        report.main()
    finally:
        torch.set_num_threads(before)
    assert seen == [3, 3]
    assert document.read_text().count("`part`: ") == 2


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_what_stands_there(mutant):
    assert mutant.old in (mutants.ROOT / mutant.file).read_text("utf-8")


@pytest.mark.parametrize(("result", "code"), [(mutants.FOUND, False), ("NOT FOUND", True)])
def test_a_mutant_that_survives_is_an_error(monkeypatch, result, code):
    monkeypatch.setattr(mutants, "COPIED", ())
    monkeypatch.setattr(mutants, "_try", lambda mutant, _: (mutant.name, "", result, "1"))
    monkeypatch.setattr(sys, "argv", ["mutants", "--only", "fsync"])
    with pytest.raises(SystemExit) as ended:
        mutants.main()
    assert ended.value.code is code


@pytest.mark.parametrize("name", report.BENCHMARKS)
def test_the_document_has_a_place_for_each_report(name):
    found = report.Report([], ["a machine"], command="python -m benchmarks.x")
    before = report.DOCUMENT.read_text("utf-8")
    once = report.insert(before, name, found, "2026-01-01")
    assert "`python -m benchmarks.x`: a machine." in once
    assert report.insert(once, name, found, "2026-01-01") == once
    assert report.insert(once, name, found, "2026-01-02") != once


def test_a_document_without_the_place_is_an_error():
    with pytest.raises(ValueError, match="markers"):
        report.insert("no markers", "page", report.Report([], []), "2026-01-01")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "title"),
    [
        ("ettin-encoder-17m", "**ettin-encoder-17m, 7 layers of 256**"),
        ("neobert", "**neobert, 6 layers of 256**"),
    ],
)
def test_long_inputs_are_measured_on_the_same_model(size, title):
    arguments = ["--size", size, "--lengths", "40", "300", "--seconds", "0", "--threads", "1"]
    found = long.measure(long.build_parser().parse_args(arguments))
    assert [figure["length"] for figure in found.figures] == [40, 300]
    assert all(figure["difference"] < forward.TOLERANCE for figure in found.figures)
    assert title in found.to_markdown()
    assert "| 300 |" in found.to_markdown()
