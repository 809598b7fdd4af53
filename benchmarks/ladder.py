"""The ladder from BERT to ModernBERT at equal processor time, rung by rung.

    python -m benchmarks.ladder --text TRAIN --held-out HELD-OUT

Every rung of :mod:`core_models.ladder` is trained from random weights on the same text, then asked
the same questions. First all rungs take some steps in turn, which tells what a token costs each of
them on this machine at this moment; from that follow the steps that use up the same processor time,
over which the learning rate falls. A rung that is finished is not run again. docs/ladder.md and the
page's file are written anew after each; with ``--write`` from what is finished, without training.
"""

import argparse
import datetime
import hashlib
import itertools
import json
import math
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from benchmarks.measure import Report, Table, environment
from benchmarks.report import insert
from core_models.config import Config
from core_models.counting.counts import count
from core_models.data import documents
from core_models.evaluation.minimal_pairs import evaluate_minimal_pairs, read_pairs
from core_models.ladder import MEASURED, Rung, rungs
from core_models.model import Model
from core_models.objectives import Weighted, build
from core_models.training import durable, models, settings
from core_models.training.examples import Masker
from core_models.training.folder import RunFolder, read_json
from core_models.training.learning import EncoderWithLoss
from core_models.training.loop import Trainer
from core_models.training.plan import Plan, plan_for
from core_models.training.prepare import Prepared, prepare
from core_models.training.pretraining import Pretraining
from core_models.training.settings import Settings
from core_models.training.streams import open_stream, open_validation
from core_models.training.tracker import Tracker
from core_models.training.validation import measure

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "ladder.md"
SEED, AGAIN = 3, 4
"""Of all rungs, and of the first and the last a second time, which tells what chance does."""
MEASURED_RATE = 0.15
"""Share of held-out pieces that is hidden, whatever was hidden in training."""
ROUNDS, STEPS = 2, 10
"""How often the cost of each rung is measured in turn, and over how many steps."""
WAVES = 0.04
"""Tables of positions begin with sine waves: drawn rows leave so short a run where it began."""
RECIPE: dict[str, Any] = {
    "model": {"size": "bert-mini"},
    "tokenizer": {"folder": "bert-mini"},
    "data": {"held_out": 0.0, "max_length": 64, "duplicates": 1, "singles": 0.5},
    "optimizer": {
        "kind": "muon",
        "learning_rate": 0.001,
        "matrix_learning_rate": 0.004,
        "betas": [0.9, 0.98],
        "weight_decay": 0.01,
    },
    "batch_size": 64,
    "precision": "bf16",
    "threads": 1,
    "report_every": 25,
}
FEWEST = 20
"""Steps of the shortest run."""
WARMUP = 0.15
"""Share of the steps in which the rate rises."""


class Unkept(Trainer):
    """A run whose model is measured at once: most rungs are models that no file format has."""

    def save(self) -> None:
        """Nothing is kept."""


@dataclass(frozen=True)
class Ladder:
    """Where the rungs are trained, and on what."""

    work: Path
    text: Path
    held_out: Path
    minutes: float
    documents: int
    accelerator: Accelerator

    def options(self, rung: Rung, seed: int, steps: int) -> Settings:
        """The settings of a run."""
        places = {"texts": [str(self._sample())], "held_out_texts": [str(self.held_out.resolve())]}
        schedule = {"warmup": round(WARMUP * steps), "decay": rung.decay}
        own = {"data": RECIPE["data"] | places, "schedule": schedule, "steps": steps, "seed": seed}
        return settings.parse(RECIPE | own)

    def _sample(self) -> Path:
        """The first documents of the text, which stand there in random order."""
        path = (self.work / "text.txt").resolve()
        if not path.exists():
            texts = itertools.islice(documents.read([self.text]), self.documents)
            path.parent.mkdir(parents=True, exist_ok=True)
            durable.write_text(path, "\n".join("\n".join(text) + "\n" for text in texts))
        return path

    def data(self, rung: Rung) -> tuple[Plan, Prepared]:
        """Examples as the rung's objectives need them, made once for all that need the same."""
        options = self.options(rung, SEED, 100)
        plan = plan_for(options, rung.config)
        run = RunFolder(self.work / f"data-{plan.format}")
        run.path.mkdir(parents=True, exist_ok=True)
        return plan, prepare(run, options, plan)

    def trainer(self, rung: Rung, seed: int, steps: int, name: str) -> Trainer:
        """A fresh model of the rung at its first step."""
        options = self.options(rung, seed, steps)
        plan, data = self.data(rung)
        path = self.work / "runs" / name
        shutil.rmtree(path, ignore_errors=True)
        run = RunFolder.create(path, options.model_dump(mode="json"))
        model = Model.new(
            rung.config, data.tokenizer, generator=torch.Generator().manual_seed(seed)
        )
        model.encoder.embeddings.start_positions(WAVES)
        masker = Masker(plan, rung.config, data.tokenizer)
        learning = Pretraining(
            settings=options,
            plan=plan,
            accelerator=self.accelerator,
            model=model,
            objective=models.build_objective(options, plan, model, None, path),
            stream=open_stream(data, masker, options, self.accelerator.device),
            validation=None,
        )
        return Unkept(
            run=run, settings=options, learning=learning, say=_say, tracker=Tracker(None, run)
        )

    # -- what a token costs ------------------------------------------------------------------------

    def check(self) -> None:
        """Refuse a folder with results of other texts."""
        texts = {"text": self.text, "held_out": self.held_out}
        asked: dict[str, Any] = {"documents": self.documents}
        for name, path in texts.items():
            with path.open("rb") as file:
                asked[name] = hashlib.file_digest(file, "sha256").hexdigest()
        kept = self.work / "asked.json"
        if kept.exists() and read_json(kept) != asked:
            raise SystemExit(
                f"{self.work} holds results of other texts, or of another number of documents: "
                "give another folder with --work."
            )
        self.work.mkdir(parents=True, exist_ok=True)
        durable.write_text(kept, json.dumps(asked, indent=2) + "\n")

    def costs(self, chosen: Sequence[Rung]) -> dict[str, float]:
        """Processor seconds of a token of each rung, measured in turn; kept in ``costs.json``."""
        kept = self.work / "costs.json"
        found: dict[str, float] = read_json(kept)
        if found.keys() != {rung.name for rung in chosen}:
            # A rung that changes the recipe alone costs what the one before does.
            first = {rung.config: rung for rung in reversed(chosen)}
            times: dict[Config, list[float]] = {config: [] for config in first}
            for number in range(ROUNDS + 1):
                for config, rung in list(first.items())[:: -1 if number % 2 else 1]:
                    spent = self._cost(rung, SEED + number, STEPS if number else 4)
                    times[config].append(spent)
            found = {rung.name: statistics.median(times[rung.config][1:]) for rung in chosen}
            durable.write_text(kept, json.dumps(found, indent=2) + "\n")
        return found

    def _cost(self, rung: Rung, seed: int, steps: int) -> float:
        trainer = self.trainer(rung, seed, steps, "cost")
        began = time.process_time()
        trainer.train(lambda: False)
        spent = time.process_time() - began
        self.accelerator.free_memory()  # it holds every model that it has prepared
        return spent / trainer.progress.tokens

    def steps(self, rung: Rung, cost: float) -> int:
        """Updates that use up the processor time."""
        _, data = self.data(rung)
        batch = float(data.training.lengths.mean()) * RECIPE["batch_size"]
        return max(FEWEST, round(60 * self.minutes / (cost * batch)))

    # -- a rung ------------------------------------------------------------------------------------

    def climb(self, rung: Rung, seed: int, cost: float) -> None:
        """Train and measure a rung, unless that is done."""
        if not self.finished(rung, seed):
            trainer = self.trainer(rung, seed, self.steps(rung, cost), f"{rung.name}-{seed}")
            began = time.process_time()
            trainer.train(lambda: False)
            spent = time.process_time() - began
            found = {
                "minutes": self.minutes,
                "seed": seed,
                "steps": trainer.progress.step,
                "tokens": trainer.progress.tokens,
                "tokens_per_second": round(1 / cost),
                "seconds": round(spent, 1),
                "parameters": count(rung.config).pretraining,
                **self._figures(trainer.learning.model),
            }
            durable.write_text(self._file(rung, seed), json.dumps(found, indent=2) + "\n")
            self.accelerator.free_memory()

    def finished(self, rung: Rung, seed: int) -> dict[str, Any]:
        """The figures of a rung; empty where it has not been run for so long."""
        found = read_json(self._file(rung, seed))
        return found if found.get("minutes") == self.minutes else {}

    def _file(self, rung: Rung, seed: int) -> Path:
        return self.work / f"{rung.name}-{seed}.json"

    def _figures(self, model: Model) -> dict[str, Any]:
        """Held-out pieces at the same share hidden, the same for all; and the minimal pairs."""
        rung = rungs()[-1]
        plan, data = self.data(rung)
        rate = {"rate": MEASURED_RATE, "last_rate": MEASURED_RATE}
        plan = replace(plan, masking=replace(plan.masking, **rate))
        masker = Masker(plan, rung.config, data.tokenizer)
        validation = open_validation(data.validation, masker, self.options(rung, SEED, 100))
        assert validation is not None
        model.eval()
        objective = Weighted([(1.0, build("masked_token", model))])
        found = measure(
            EncoderWithLoss(model.encoder, objective),
            validation,
            weights=objective.loss_weights(),
            device=self.accelerator.device,
        )
        pairs = evaluate_minimal_pairs(model, read_pairs())
        return {
            "accuracy": found["masked_token_accuracy"],
            "perplexity": math.exp(found["masked_token_loss"]),
            "minimal_pairs": pairs.accuracy,
            "phenomena": pairs.phenomena,
        }


# --- writing --------------------------------------------------------------------------------------


def report(found: dict[str, Any]) -> Report:
    """The table of docs/ladder.md from the page's file."""
    rows = []
    for rung in rungs():
        name = f"{rung.title} (`{rung.name}`)"
        for title, kind in ((name, "rungs"), ("the same, another seed", "again")):
            if rung.name in found[kind]:
                rows.append(_row(title, found[kind][rung.name]))
    columns = ("rung", "parameters", "tokens/s", "steps", "tokens (millions)", "seconds", "right")
    columns = (*columns, "perplexity", "minimal pairs")
    note = (
        f"{found['minutes']:g} minutes of one core each; seconds: what they came to. Right: "
        "held-out hidden pieces that are the model's first choice, 15 % hidden in all rungs; "
        "perplexity of the same pieces."
    )
    table = Table("From BERT to ModernBERT", columns, rows, note)
    command = "python -m benchmarks.ladder --text TRAIN --held-out HELD-OUT"
    command += f" --minutes {found['minutes']:g}"
    return Report([table], found["environment"], command=command)


def _row(title: str, row: dict[str, Any]) -> tuple[str, ...]:
    return (
        title,
        f"{row['parameters']:,}",
        f"{row['tokens_per_second']:,}",
        f"{row['steps']:,}",
        f"{row['tokens'] / 1e6:.2f}",
        f"{row['seconds']:.0f}",
        f"{100 * row['accuracy']:.1f} %",
        f"{row['perplexity']:.0f}",
        f"{100 * row['minimal_pairs']:.1f} %",
    )


def write(ladder: Ladder, done: dict[str, dict[str, Any]]) -> None:
    """The page's file and the document's table, from what is measured so far.

    ``done``: figures by the name of the rung, of the first seed (``rungs``) and the second
    (``again``).
    """
    day = datetime.date.today().isoformat()
    found = {
        "minutes": ladder.minutes,
        "day": day,
        "environment": environment("torch", threads=1),
        **done,
    }
    MEASURED.parent.mkdir(exist_ok=True)
    durable.write_text(MEASURED, json.dumps(found, indent=1) + "\n")
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(insert(text, "ladder", report(found), day), encoding="utf-8")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Train what is not trained yet, and write what is known after each rung."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--text", type=Path, required=True, help="documents in random order")
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "ladder")
    parser.add_argument("--minutes", type=float, default=4.0, help="processor time of a rung")
    parser.add_argument("--documents", type=int, default=6_000, help="of the text, at most")
    parser.add_argument("--write", action="store_true", help="write what is finished, train none")
    chosen = vars(parser.parse_args())
    only_write = chosen.pop("write")
    torch.set_num_threads(1)
    ladder = Ladder(**chosen, accelerator=Accelerator(cpu=True))
    ladder.check()
    steps = rungs()
    costs = {} if only_write else ladder.costs(steps)
    done: dict[str, dict[str, Any]] = {"rungs": {}, "again": {}}
    for kind, seed, which in (("rungs", SEED, steps), ("again", AGAIN, (steps[0], steps[-1]))):
        for rung in which:
            if not only_write:
                ladder.climb(rung, seed, costs[rung.name])
            if found := ladder.finished(rung, seed):
                done[kind][rung.name] = found
                write(ladder, done)


if __name__ == "__main__":
    main()
