"""The model card (README.md) of an exported run: what it is, what it read, how to open it.

Written from the run's own files, so every figure can be found there. It names texts, it never
quotes them, and no path of this machine stands in it. No Gradio, no PyTorch in it.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.runs import config as run_config
from app.runs.doctor.case import OVER_PIECES
from app.runs.export.card_open import opening, scores
from app.runs.export.starts import Start, code, shipped, starts
from app.runs.forms.command import models_in, with_hub_ids
from app.runs.runs import Runs
from app.serving.names import RUN_PREFIX
from core_models.training.folder import RunFolder, read_json

RECIPE = "recipe.json"
"""The run's settings, in the folder of its model."""
_PURPOSES = {
    "masked_token": "fill hidden pieces of a text",
    "masked_diffusion": "fill hidden pieces of a text, however many",
    "masked_next_token": "fill hidden pieces of a text, and predict the next piece",
    "next_sentence": "tell whether the second text followed the first",
    "sentence_order": "tell whether two neighbouring texts are in their order",
    "span_boundary": "fill hidden spans from the two pieces beside them",
    "permutation": "predict pieces in any order",
    "replaced_token": "tell which pieces were replaced",
    "causal": "predict the next piece",
    "distillation": "give the answers of a larger model",
    "classify": "give a text one of its labels",
    "multilabel": "give a text all labels that hold",
    "regress": "give a text, or a pair, a score",
    "similarity": "place two texts so that their cosine is their similarity",
    "tag": "give every word a tag",
    "span": "find the answer to a question in a text",
}


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is told of one run at one step."""

    title: str
    run: str
    recipe: Mapping[str, Any]
    """The run's settings with names in place of paths."""
    status: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    """Of the finished model; empty for a checkpoint."""
    record: Mapping[str, Any]
    """The last report up to the step."""
    held_out: Mapping[str, Any]
    """Figures on texts or rows that were not learnt, by name, with the step in ``step``."""
    step: int
    starts: tuple[Start, ...]
    """Models that it began with, or learnt from."""

    @classmethod
    def of(cls, runs: Runs, folder: RunFolder, step: int, *, final: bool) -> "Card":
        """Read a run folder."""
        run = folder.path.name
        recipe = portable(runs.config(run), runs.named)
        evaluation = read_json(folder.path / "evaluation.json") if final else {}
        records = [record for record in folder.metrics() if record["step"] <= step]
        measured = [r for r in records if any(n.startswith("validation_") for n in r)]
        figures = evaluation.get("held_out") or evaluation.get("metrics")
        if figures:
            held_out = {"step": evaluation.get("steps", step), **figures}
        else:
            last = measured[-1] if measured else {}
            held_out = {
                name.removeprefix("validation_"): value
                for name, value in last.items()
                if name == "step" or name.startswith("validation_")
            }
        return cls(
            title=str(recipe.get("name") or run),
            run=run,
            recipe=recipe,
            status=folder.status(),
            evaluation=evaluation,
            record=records[-1] if records else {},
            held_out=held_out,
            step=step,
            starts=starts(runs, run),
        )

    @property
    def task(self) -> Mapping[str, Any]:
        """Facts about the labelled set of a fine-tuning, {} for a pretraining."""
        found = self.status.get("task")
        return found if isinstance(found, Mapping) else {}

    def text(
        self,
        config: Mapping[str, Any],
        top: str,
        *,
        generator: bool = False,
        beside: Collection[str] = (),
    ) -> str:
        """The card of one of the folders.

        Args:
            config: its config.json.
            top: its name in the zip.
            generator: whether it is the model that filled masks for the other one.
            beside: kinds of all the folders in the zip.
        """
        title = f"{_line(self.title)}: generator" if generator else _line(self.title)
        parts = [
            ["---", "library_name: transformers", *self._bases(), "tags:", "- cloze", "---"],
            [f"# {title}"],
            *self._purpose(generator),
            ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in self._facts(config))],
            ["## Data", "", *self._data()],
            ["## Held-out figures", "", *self._figures(generator)],
            [
                *("## Open it", ""),
                *opening(config, top, generator=generator, beside=beside),
                *scores(self.task, config),
            ],
            ["## Repeat it", "", *self._repeat(top, generator)],
            ["## Licence", "", *self._licence()],
        ]
        return "\n\n".join("\n".join(part) for part in parts) + "\n"

    def _bases(self) -> list[str]:
        """Lines of the head for the hub, which links cards by its own ids."""
        found = [start.name for start in self.starts if start.kind == "hub" and not start.teacher]
        names = list(dict.fromkeys(found))
        if len(names) == 1:
            return [f"base_model: {names[0]}"]
        return ["base_model:", *(f"- {name}" for name in names)] if names else []

    def _purpose(self, generator: bool) -> list[list[str]]:
        names = dict(self.status.get("objectives") or {})
        if generator:
            said = "It filled hidden pieces for the model beside it, which learnt to find them."
        else:
            goals = [_PURPOSES.get(name, name.replace("_", " ")) for name in names]
            said = f"It learnt to {', and to '.join(goals)}." if goals else ""
        about = _line(str(self.recipe.get("description") or ""))
        labels = [_line(str(label)) for label in self.task.get("labels") or []]
        told = [f"Labels: {', '.join(labels)}."] if labels and not generator else []
        return [part for part in ([about], [said, *told]) if any(part)]

    def _facts(self, config: Mapping[str, Any]) -> list[tuple[str, str]]:
        steps = int(self.status.get("steps") or self.step)
        done = "" if self.step >= steps else f" of {steps:,}: the training had not ended"
        best = self.evaluation.get("best_epoch")
        rows = [
            ("architecture", f"`{(config.get('architectures') or ['?'])[0]}`"),
            ("family", str(self.status.get("family") or config.get("model_type"))),
            ("objectives", _weights(self.status.get("objectives") or {})),
            ("steps", f"{self.step:,}{done}"),
            ("epoch whose weights these are", "" if best is None else str(best)),
            ("tokens read", _count(self.record.get("tokens", self.evaluation.get("tokens")))),
            ("training time", _time(self.record.get("seconds", self.evaluation.get("seconds")))),
            ("machine", self._machine()),
            *(
                (what, ", ".join(_line(s.pinned) for s in self.starts if s.teacher == teacher))
                for what, teacher in (("began with", False), ("learnt from the answers of", True))
            ),
        ]
        return [(key, value) for key, value in rows if value]

    def _machine(self) -> str:
        environment = self.status.get("environment") or {}
        threads, device = environment.get("threads"), environment.get("device")
        if device == "cpu" and threads:
            return f"{threads} CPU thread{'' if threads == 1 else 's'}"
        return str(device or "")

    def _data(self) -> list[str]:
        wanted = self.recipe.get("data") or {}
        lines = [f"- {code(name)}" for name in _texts(self.recipe)]
        if wanted.get("dataset"):
            lines.append(f"- {code(str(wanted['dataset']))} of the library `datasets`")
        data = self.status.get("data") or {}
        if self.task:
            train, dev = (self.task.get(part) or {} for part in ("train", "dev"))
            rows = f"{_count(train.get('rows'))} rows to learn from"
            lines.append(f"- {rows}, {_count(dev.get('rows'))} to measure on")
        elif data:
            lines += [
                f"- {_count(data.get('documents'))} documents, {_count(data.get('tokens'))} pieces,"
                f" a vocabulary of {_count(data.get('vocabulary'))}",
                f"- {_count(data.get('held_out_documents'))} more documents held out",
            ]
        return [*lines, "", "This card names the texts; what stands in them is not part of it."]

    def _figures(self, generator: bool) -> list[str]:
        names = [n for n, v in self.held_out.items() if n != "step" and isinstance(v, int | float)]
        if "replaced_token" in (self.status.get("losses") or {}):
            names = [name for name in names if name.startswith("masked_token") == generator]
        if not names:
            return ["Nothing was measured up to this step."]
        where = "rows" if self.task else "documents"
        at = f"at step {int(self.held_out['step']):,}"
        if best := self.evaluation.get("best_epoch"):
            at = f"with the weights of epoch {best}"
        lines = [f"On the held-out {where}, {at}:", ""]
        lines += ["| measure | value |", "|---|---:|"]
        lines += [f"| {name.replace('_', ' ')} | {self.held_out[name]:.4f} |" for name in names]
        return [*lines, *self._baselines(names)]

    def _baselines(self, names: Collection[str]) -> list[str]:
        main = self.task.get("main")
        if self.task:
            found = {
                _line(str(each["title"])): each["metrics"].get(main)
                for each in self.task.get("baselines") or []
            }
            said = f"What can be had without this training ({str(main).replace('_', ' ')}):"
        else:
            titles = {
                "uniform": "knowing nothing",
                "unigram_entropy": "knowing only how frequent each piece is",
            }
            known = self.status.get("baselines") or {}
            found = {text: known.get(name) for name, text in titles.items()}
            said = "What a loss over pieces would be (nats) of a model:"
            found = found if set(OVER_PIECES) & set(names) else {}
        rows = [(k, v) for k, v in found.items() if isinstance(v, int | float)]
        if not rows:
            return []
        table = [f"| {title} | {value:.4f} |" for title, value in rows]
        return ["", said, "", "| baseline | value |", "|---|---:|", *table]

    def _repeat(self, top: str, generator: bool) -> list[str]:
        where = "in the folder of the model beside this one" if generator else "beside this file"
        lines = [
            f"The settings of the run are `{RECIPE}` {where}. In a copy of Cloze, from the folder "
            "that holds this one:",
            "",
            "```",
            f"python -m core_models.training ./{top}/{RECIPE} --run runs/{self.run}",
            "```",
        ]
        own = [name for name in _texts(self.recipe) if not _shipped_text(name)]
        if own:
            said = ", ".join(map(code, own))
            lines += ["", f"It reads files that are not part of Cloze: {said}."]
        return [*lines, *self._models_of_recipe()]

    def _models_of_recipe(self) -> list[str]:
        """What has to be known of the models that the settings name, but for shipped ones."""
        names = [name for name in models_in(self.recipe) if shipped(name) is None]
        runs = [name for name in names if name.startswith(RUN_PREFIX)]
        known = {start.pinned for start in self.starts if start.kind == "hub"}
        fetched = [name for name in names if name in known]
        others = [name for name in names if name not in (*runs, *fetched)]
        lines = []
        if runs:
            said = ", ".join(map(code, runs))
            lines += ["", f"It begins with a model of another run ({said}): name its folder there."]
        if fetched:
            said = ", ".join(map(code, fetched))
            lines += ["", f"The command fetches {said} from the Hugging Face hub."]
        if others:
            said = ", ".join(map(code, others))
            said = f"It begins with what is not part of Cloze ({said})"
            lines += ["", f"{said}: write the path of its folder there."]
        return lines

    def _licence(self) -> list[str]:
        lines = [
            "No licence is given here: whoever trained this model chooses one and writes it into "
            "the first lines of this file.",
        ]
        for start in self.starts:
            lines += ["", start.told()]
        names = _texts(self.recipe)
        if any(_shipped_text(name) for name in names):
            lines += ["", "The shipped texts and sets (Primer, Atlas) are CC0."]
        if any(not _shipped_text(name) for name in names):
            lines += ["", "The licences of the other texts that it read may have a say, too."]
        return lines


def portable(recipe: Mapping[str, Any], named: Callable[[str], str] = str) -> dict[str, Any]:
    """Settings without the folders of this machine, as the command line takes them.

    Of an absolute path its last part stays; a model of the hub has its id, with its commit where
    the path tells it.

    Args:
        recipe: of a run.
        named: of a path that is a model's, its name.
    """
    values = with_hub_ids(recipe)
    run_config.replace_strings(values, lambda text: _short(named(text)))
    return values


def _short(text: str) -> str:
    path = Path(text)
    if not path.is_absolute() and not re.match(r"[A-Za-z]:[\\/]|~", text):
        return text
    parts = [part for part in re.split(r"[\\/]", text) if part and part not in ("model", "~")]
    return parts[-1] if parts else "model"


def _texts(recipe: Mapping[str, Any]) -> list[str]:
    data, task = recipe.get("data") or {}, recipe.get("task") or {}
    parts = ("texts", "training_only", "held_out_texts")
    names = [name for part in parts for name in data.get(part) or []]
    return [str(name) for name in [*names, task.get("set"), task.get("dev")] if name]


def _shipped_text(name: str) -> bool:
    return name.startswith(("primer/", "atlas/")) or ("/" not in name and "." not in name)


def _weights(objectives: Mapping[str, Any]) -> str:
    names = [
        name.replace("_", " ") + ("" if weight == 1 else f" (weight {weight:g})")
        for name, weight in objectives.items()
    ]
    return ", ".join(names)


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else ""


def _time(value: Any) -> str:
    if not isinstance(value, int | float):
        return ""
    return f"{value:.0f} seconds" if value < 120 else f"{value / 60:.0f} minutes"


def _line(text: str) -> str:
    """A text of a visitor on one line, without what Markdown or YAML would read as theirs."""
    return re.sub(r"([`|<>\[\]*_#\\])", r"\\\1", " ".join(text.split()))
