"""What can be seen before a run is started: its first batch, its size and its time."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from core_models.cli.main import main
from core_models.errors import InputError
from core_models.tokenizer import Tokenizer
from core_models.training import estimate as estimates
from core_models.training import host, models, settings
from core_models.training.estimate import estimate
from core_models.training.folder import RunFolder
from core_models.training.learning import EncoderWithLoss
from core_models.training.preview import first_batch
from core_models.training.process import train
from tests.training.test_resume import SMALL

pytestmark = pytest.mark.usefixtures("in_process")
MakeRun = Callable[..., RunFolder]


def preview(run: RunFolder, **options: Any) -> list[dict[str, Any]]:
    rows = first_batch(settings.read(run.config_path), run, **options)
    json.dumps(rows)  # plain values only
    return rows


def test_the_first_batch_is_what_the_first_step_reads(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(steps=6)
    shown = preview(run, rows=16)
    seen: list[list[int]] = []
    original = EncoderWithLoss.forward

    def record(self: EncoderWithLoss, batch: Any) -> Any:
        if not seen:
            seen.extend(
                ids[mask].tolist()
                for ids, mask in zip(batch.input_ids, batch.attention_mask, strict=True)
            )
        return original(self, batch)

    monkeypatch.setattr(EncoderWithLoss, "forward", record)
    train(run.config_path, lambda line: None)
    assert [row["ids"] for row in shown] == seen


def test_masked_pairs_are_told_piece_by_piece(make_run: MakeRun) -> None:
    rows = preview(make_run())
    assert len(rows) == 8
    for row in rows:
        assert row["pieces"][0] == "[CLS]"
        assert len({len(row[k]) for k in ("pieces", "ids", "segments", "case", "labels")}) == 1
        for piece, label, case in zip(row["pieces"], row["labels"], row["case"], strict=True):
            assert (label is None) == (case == "")
            assert (case == "mask") == (piece == "[MASK]")
            assert (case == "kept") == (piece == label)
        assert any(row["labels"])
        assert (row["pair"] is None) == (1 not in row["segments"])
        assert row["targets"] is row["boundaries"] is row["visibility"] is None


def test_spans_and_orders_are_told_by_place(make_run: MakeRun, toy: Callable[..., Any]) -> None:
    data = {"texts": ["text.txt"], "held_out": 0.1, "max_length": 24}
    spans = preview(make_run("spans", model={"size": "spanbert-base"}, data=data))
    hidden = [(row, b) for row in spans for b in row["boundaries"]]
    assert hidden
    for row, b in hidden:
        assert row["labels"][b["before"] + 1 + b["place"]] == b["piece"]
        assert row["labels"][b["before"]] is row["labels"][b["after"]] is None
    data |= {"reuse": 8, "memory": 12}
    model = {"size": "xlnet-base", "overrides": SMALL}
    orders = preview(
        make_run("orders", model=model, data=data, batch_size=4, tokenizer={"vocabulary": 300})
    )
    assert [row["reversed"] for row in orders] == [False, False, True, True]
    for row in orders:
        assert row["pieces"][-1] == "[CLS]"
        assert row["targets"]
        for target in row["targets"]:
            assert row["pieces"][target["place"]] == target["piece"]
            assert target["place"] not in target["sees"]
            line = row["visibility"][target["place"]]
            assert line[target["place"]] == "1", "the content stream sees the piece itself"
            assert [i for i in target["sees"] if line[i] != "1"] == []


def test_the_data_of_a_preview_are_those_of_the_run(make_run: MakeRun) -> None:
    run = make_run()
    first = preview(run)
    made = (run.data_path / "prepared.json").stat().st_mtime_ns
    assert preview(run) == first
    assert (run.data_path / "prepared.json").stat().st_mtime_ns == made
    empty = make_run("empty")
    (empty.path / "text.txt").write_text("")
    with pytest.raises(InputError, match="no text in"):
        preview(empty)


@pytest.mark.parametrize("size", ["bert-mini", "electra-small", "xlnet-base", "albert-base"])
def test_an_estimate_counts_what_the_run_will_have(make_run: MakeRun, size: str) -> None:
    data = {"texts": ["text.txt"], "held_out": 0.3, "max_length": 24}
    run = make_run(
        model={"size": size, "overrides": SMALL},
        data=data,
        batch_size=4,
        steps=6,
        tokenizer={"vocabulary": 120, "kind": "wordpiece"},
    )
    random, threads = torch.get_rng_state(), torch.get_num_threads()
    found = estimate(settings.read(run.config_path), run.path, seconds=0.05)
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.get_num_threads() == threads
    assert found.tokens_per_step == 4 * 24
    assert found.seconds == pytest.approx(6 * found.seconds_per_step)
    assert found.seconds_per_step > 0
    assert found.memory > 3 * 4 * found.parameters  # weights, gradients, one state at least
    assert not run.data_path.exists()
    train(run.config_path, lambda line: None)
    status = run.status()
    # The toy text has fewer words than pieces that may be learnt.
    width = 128 if size in ("electra-small", "albert-base") else 32
    missing = 120 - status["data"]["vocabulary"]
    biases = 0 if size == "electra-small" else 1
    assert found.parameters == status["parameters"] + missing * (width + biases)
    assert found.companions.keys() == status["companions"].keys()


def test_an_estimate_counts_smaller_batches_as_what_they_are(
    make_run: MakeRun, toy: Callable[..., Any]
) -> None:
    """Tokens of the mean batch, memory of the largest."""
    found = []
    for name, more in (("plain", {}), ("grown", {"first_batch": 4, "first_share": 0.5})):
        run = make_run(name, steps=10, data=toy()["data"] | more)
        found.append(estimate(settings.read(run.config_path), run.path, seconds=0.1))
    plain, grown = found
    assert grown.tokens_per_step == pytest.approx(
        (16 + 4) / 2 / 16 * plain.tokens_per_step, rel=0.1
    )
    assert grown.memory == pytest.approx(plain.memory, rel=0.1)


def test_an_estimate_knows_vocabularies_of_shipped_models(make_run: MakeRun) -> None:
    """As the run itself does."""
    run = make_run(tokenizer={"folder": "bert-mini"})
    pieces = Tokenizer.from_folder(settings.ASSETS / "models" / "bert-mini").vocabulary
    found = estimate(settings.read(run.config_path), run.path, seconds=0.0)
    first_batch(settings.read(run.config_path), run)
    assert Tokenizer.from_folder(run.data_path / "tokenizer").vocabulary == pieces
    assert found.parameters > pieces * 32


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of the batches that are learnt from."""
    seen: list[tuple[int, ...]] = []
    real = EncoderWithLoss.forward

    def record(self: EncoderWithLoss, batch: Any) -> Any:
        seen.append(tuple(batch.input_ids.shape))
        return real(self, batch)

    monkeypatch.setattr(EncoderWithLoss, "forward", record)
    return seen


def test_a_trial_of_a_large_model_reads_few_examples_once(
    make_run: MakeRun, updates: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    options = settings.read(run.config_path)
    length = options.data.max_length
    whole = estimate(options, run.path, seconds=0.0)
    assert updates == [(8, length)]  # no second one after one that took that long
    monkeypatch.setattr(estimates, "_OPERATIONS", 1.0)
    part = estimate(options, run.path, seconds=0.0)
    assert updates[1:] == [(1, length)]
    assert part.tokens_per_step == whole.tokens_per_step


def test_a_trial_reads_fewer_examples_where_their_arithmetic_is_emulated(
    make_run: MakeRun, updates: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(precision="bf16", threads=1)
    options = settings.read(run.config_path)
    for emulated, rows in ((False, 8), (True, 1)):
        monkeypatch.setattr(estimates, "emulated", lambda found=emulated: found)
        each = 3e6  # operations, about, of an example of the toy
        monkeypatch.setattr(estimates, "_OPERATIONS", 8 * each)
        estimate(options, run.path, seconds=0.0)
        assert updates.pop()[0] == rows


@pytest.mark.parametrize("size", ["bert-base-uncased", "electra-base", "deberta-base"])
def test_a_trial_that_would_fill_the_memory_is_refused(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    """Before a model is built: a server whose memory is full is ended, for everybody."""
    monkeypatch.setattr(models, "build_model", lambda *given: pytest.fail("was built"))
    monkeypatch.setattr(estimates, "free_memory", lambda: 1e6)
    run = make_run(model={"size": size, "overrides": {"layers": 12, "width": 768}})
    with pytest.raises(InputError, match="this machine has 1 MB free"):
        estimate(settings.read(run.config_path), run.path)


@pytest.mark.parametrize(
    ("shape", "vocabulary"),
    [({"positions": 4096}, 50_000), ({"layers": 48, "inner": 16_384, "positions": 1024}, 100)],
)
def test_scores_of_pieces_and_wide_layers_count_in_the_memory(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, shape: dict[str, int], vocabulary: int
) -> None:
    """The parameters of both would fit."""
    monkeypatch.setattr(models, "build_model", lambda *given: pytest.fail("was built"))
    monkeypatch.setattr(estimates, "free_memory", lambda: 500e6)
    small = {"layers": 1, "width": 8, "heads": 1}
    run = make_run(
        model={"size": "bert-mini", "overrides": small | shape},
        tokenizer={"vocabulary": vocabulary},
        data={"texts": ["text.txt"], "max_length": shape["positions"]},
        objectives={"causal": 1.0},
    )
    with pytest.raises(InputError, match=r"smaller model or vocabulary"):
        estimate(settings.read(run.config_path), run.path)


CONTAINERS = {
    "one": {"memory.max": "4000", "memory.current": "1500", "memory.stat": "inactive_file 500\n"},
    "two": {
        "memory/memory.limit_in_bytes": "4000\n",
        "memory/memory.usage_in_bytes": "1500\n",
        "memory/memory.stat": "cache 7\ntotal_inactive_file 500\n",
    },
    "none": {},
    "all": {"memory.max": "max\n", "memory.current": "1500", "memory.stat": "inactive_file 0\n"},
    "odd": {"memory.max": "4000", "memory.current": "1500", "memory.stat": "no pairs here\n"},
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_container_has_the_memory_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Of the machine's it would be told too much: the system ends what takes more."""
    for name, content in CONTAINERS[kind].items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(host, "CGROUPS", tmp_path)
    if kind in ("one", "two"):
        assert host.container_memory() == (4000, 3000)
        assert estimates.free_memory() == 3000
    else:
        assert estimates.free_memory() > 1e6


def test_a_build_for_gpus_estimates_without_one(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch as pip installs it: it names the device that it was built for."""

    def current(check_available: bool = False) -> torch.device | None:
        return None if check_available else torch.device("cuda")

    monkeypatch.setattr(torch.accelerator, "current_accelerator", current)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    run = make_run()
    assert estimate(settings.read(run.config_path), run.path, seconds=0.01).device == "cpu"


def test_the_commands(
    make_run: MakeRun,
    tmp_path: Path,
    toy: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (make_run().path / "text.txt").read_text()
    (tmp_path / "text.txt").write_text(text)
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(toy(steps=6)))
    before = sorted(tmp_path.iterdir())
    assert main(["train", str(recipe), "--preview", "--estimate"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["estimate"]["steps"] == 6
    assert len(values["first_batch"]) == 8
    assert sorted(tmp_path.iterdir()) == before, "nothing is left behind"
    run = tmp_path / "wanted"
    for asked in ("--estimate", "--preview"):
        assert main(["train", str(recipe), asked, "--run", str(run)]) == 0
    assert not run.exists(), "the command that trains is not refused"
    assert len(json.loads(capsys.readouterr().out.splitlines()[-1])["first_batch"]) == 8
