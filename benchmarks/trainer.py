"""Pretraining speed: a whole run of ours against transformers' Trainer, on the same text.

Both pretrain the same size with masked tokens, on the Primer, cut by the same tokenizer, 32 rows of
at most 128 pieces a step. Theirs is the usual route: ``BertForMaskedLM``, ``Trainer`` and
``DataCollatorForLanguageModeling`` over full chunks of 128 pieces, with their defaults (float32,
dropout 0.1). Ours is a run folder with the choices of the recipes: hidden positions only, fused
AdamW, no dropout. What happens between two steps counts: reading, masking, collating; of ours not
the reports. Run with ``python -m benchmarks.trainer``.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate.state import AcceleratorState

from benchmarks.measure import Report, Table, environment, run_main
from core_models.data import documents
from core_models.model import SHIPPED
from core_models.training.folder import RunFolder
from core_models.training.process import train
from core_models.training.settings import ASSETS

NAME = "bert-mini"
ROWS, LENGTH = 32, 128
EVERY = 5
"""Steps between two reports of ours."""
IDLE = 5
"""First steps of each run that are not counted."""


def measure(arguments: argparse.Namespace) -> Report:
    """Time runs in turn."""
    torch.set_num_threads(arguments.threads)
    texts = sorted((ASSETS / "primer").glob("english-*.txt"))
    speeds: dict[str, list[float]] = {kind: [] for kind in ("theirs", *arguments.precisions)}
    with tempfile.TemporaryDirectory() as folder:
        theirs = Theirs(texts, Path(folder) / "theirs")
        for number in range(arguments.rounds):
            for kind in speeds if number % 2 == 0 else reversed(speeds):
                if kind == "theirs":
                    speeds[kind].append(theirs.speed(arguments.steps))
                else:
                    path = Path(folder) / f"{kind}-{number}"
                    speeds[kind].append(our_speed(path, texts, kind, arguments))
    return report(speeds, arguments)


def our_speed(path: Path, texts: Sequence[Path], kind: str, arguments: argparse.Namespace) -> float:
    """Real tokens in a second of a run's median report."""
    settings = {
        "model": {"size": NAME, "dropout": 0.0},
        "tokenizer": {"folder": str(SHIPPED / NAME)},
        "data": {
            "texts": [str(text) for text in texts],
            "held_out": 0.0,
            "max_length": LENGTH,
            "format": "full_sentences",  # rows as full as theirs
        },
        "objectives": {"masked_token": 1.0},
        "optimizer": {"learning_rate": 1e-4},
        "precision": kind,
        "batch_size": ROWS,
        "steps": arguments.steps + IDLE,
        "threads": arguments.threads,
        "report_every": EVERY,
        "validate_every": 1_000_000,
        "checkpoints": {"every": 1_000_000, "keep": 1},
    }
    run = RunFolder.create(path, settings)
    AcceleratorState._reset_state(reset_partial_state=True)  # theirs has another precision
    state = train(run.config_path, lambda line: None)
    AcceleratorState._reset_state(reset_partial_state=True)
    if state != "finished":
        raise RuntimeError(f"the run is {state}: {run.status().get('reason', '')}")
    lines = (run.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    reports = [json.loads(line) for line in lines]
    found = [r["tokens_per_second"] for r in reports if r.get("tokens_per_second")]
    return statistics.median(found[IDLE // EVERY :])


class Theirs:
    """The usual route, over the same documents."""

    def __init__(self, texts: Sequence[Path], folder: Path) -> None:
        """Join all pieces and cut them into full chunks."""
        from transformers import AutoTokenizer

        self.folder = folder
        self.tokenizer = AutoTokenizer.from_pretrained(SHIPPED / NAME)
        lines = [line for document in documents.read(list(texts)) for line in document]
        cut = self.tokenizer(lines, add_special_tokens=False)["input_ids"]
        pieces = [piece for line in cut for piece in line]
        chunks = range(0, len(pieces) - LENGTH, LENGTH)
        self.rows = [{"input_ids": pieces[start : start + LENGTH]} for start in chunks]

    def speed(self, steps: int) -> float:
        """Tokens in a second of the median step, from its end to the next one's."""
        from transformers import (
            BertConfig,
            BertForMaskedLM,
            DataCollatorForLanguageModeling,
            Trainer,
            TrainerCallback,
            TrainingArguments,
        )

        ends: list[float] = []

        class Clock(TrainerCallback):
            """Notes when steps end."""

            def on_step_end(self, *_: Any, **__: Any) -> None:
                ends.append(time.perf_counter())

        shape = BertConfig.from_pretrained(SHIPPED / NAME)
        shape.hidden_dropout_prob = shape.attention_probs_dropout_prob = 0.1
        trainer = Trainer(
            model=BertForMaskedLM(shape),
            args=TrainingArguments(
                output_dir=str(self.folder),
                per_device_train_batch_size=ROWS,
                max_steps=steps + IDLE,
                learning_rate=1e-4,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
                log_level="error",
            ),
            data_collator=DataCollatorForLanguageModeling(self.tokenizer, mlm_probability=0.15),
            train_dataset=self.rows,
            callbacks=[Clock()],
        )
        trainer.train()
        return (
            ROWS
            * LENGTH
            / statistics.median(
                after - before for before, after in zip(ends[IDLE:], ends[IDLE + 1 :], strict=False)
            )
        )


def report(speeds: dict[str, list[float]], arguments: argparse.Namespace) -> Report:
    """The table of medians and of the median ratio of a round."""
    theirs = speeds["theirs"]
    lines, figures = [], []
    for kind in arguments.precisions:
        ours = statistics.median(speeds[kind])
        gains = [a / b for a, b in zip(speeds[kind], theirs, strict=True)]
        gain = statistics.median(gains)
        spread = f"{min(gains):.2f}-{max(gains):.2f}"
        other = statistics.median(theirs)
        lines.append((NAME, kind, f"{ours:,.0f}", f"{other:,.0f}", f"{gain:.2f}", spread))
        figure: dict[str, float | int | str] = {"size": NAME, "kind": kind, "ours": ours}
        figures.append(figure | {"theirs": other, "speedup": gain, "rounds": len(theirs)})
    table = Table(
        "Pretraining run: everything between two steps",
        ("size", "our run", "Cloze, tokens/s", "Trainer, tokens/s", "speed-up", "of single rounds"),
        lines,
        f"Masked tokens alone, {ROWS} rows of at most {LENGTH} pieces; padding is not counted. "
        f"{arguments.rounds} rounds of {arguments.steps} steps each in turn, medians; the speed-up "
        "is the median of each round's ratio. Above 1 is faster.",
    )
    machine = environment("torch", "transformers", threads=arguments.threads)
    return Report([table], machine, figures)


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trainer", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--precisions", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"]
    )
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
