"""Charts of runs: which figures a run reports, what they are called, and their curves.

No Gradio in it. A chart is made once for all viewers: it is kept until there are new reports.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from app.parts.figure import drawn
from app.runs import config as run_config
from app.runs.doctor.case import OVER_PIECES
from app.runs.forms import races as run_races
from app.runs.reports.reports import Reports, plain
from core_models import InputError
from viz import training
from viz.svg import Wording, told, untold
from viz.training import Baseline, Curve

NAMES = {
    "loss": Wording("Total loss"),
    "masked_token_loss": Wording("Masked-token loss"),
    "masked_token_accuracy": Wording("Masked-token accuracy"),
    "masked_diffusion_loss": Wording("Masked-diffusion loss"),
    "masked_diffusion_accuracy": Wording("Masked-diffusion accuracy"),
    "masked_next_token_loss": Wording("Masked-next-token loss"),
    "masked_next_token_accuracy": Wording("Masked-next-token accuracy"),
    "next_sentence_loss": Wording("Next-sentence loss"),
    "next_sentence_accuracy": Wording("Next-sentence accuracy"),
    "sentence_order_loss": Wording("Sentence-order loss"),
    "sentence_order_accuracy": Wording("Sentence-order accuracy"),
    "replaced_token_loss": Wording("Replaced-token loss"),
    "replaced_token_accuracy": Wording("Replaced-token accuracy"),
    "replaced_token_share": Wording("Share of replaced tokens"),
    "replaced_token_found": Wording("Replaced tokens found"),
    "replaced_token_lucky": Wording("Samples that hit the original"),
    "span_boundary_loss": Wording("Span-boundary loss"),
    "span_boundary_accuracy": Wording("Span-boundary accuracy"),
    "permutation_loss": Wording("Permutation loss"),
    "permutation_accuracy": Wording("Permutation accuracy"),
    "causal_loss": Wording("Next-token loss"),
    "causal_accuracy": Wording("Next-token accuracy"),
    "distillation_loss": Wording("Distillation loss"),
    "distillation_accuracy": Wording("Agreement with the teacher"),
    "hidden_cosine_loss": Wording("Distance from the teacher’s states"),  # noqa: RUF001
    "classify_loss": Wording("Label loss"),
    "classify_accuracy": Wording("Label accuracy"),
    "multilabel_loss": Wording("Loss of several labels"),
    "multilabel_accuracy": Wording("Rows with just the right labels"),
    "tag_loss": Wording("Tag loss"),
    "tag_accuracy": Wording("Tag accuracy"),
    "span_loss": Wording("Answer loss"),
    "span_accuracy": Wording("Answer accuracy"),
    "regress_loss": Wording("Score loss"),
    "similarity_loss": Wording("Similarity loss"),
    "learning_rate": Wording("Learning rate"),
    "gradient_norm": Wording("Gradient norm"),
    "tokens_per_second": Wording("Tokens per second"),
    "accuracy": Wording("Accuracy"),
    "micro_f1": Wording("Micro-F1"),
    "macro_f1": Wording("Macro-F1"),
    "pearson": Wording("Pearson correlation"),
    "spearman": Wording("Spearman correlation"),
    "entity_f1": Wording("F1 of names"),
    "entity_precision": Wording("Precision of names"),
    "entity_recall": Wording("Recall of names"),
    "f1": Wording("F1"),
    "exact": Wording("Exact match"),
    "exact_match": Wording("Exact match"),
    "calibration_error": Wording("Calibration error"),
    "best_f1": Wording("F1 at the best threshold"),
    "answerable_f1": Wording("F1 where there is an answer"),
    "no_answer_accuracy": Wording("Accuracy where there is no answer"),
    "own_loss": Wording("Loss of its own goal"),
    "own_accuracy": Wording("Accuracy at its own goal"),
}
"""What the figures of reports are called."""
KNOWN = {
    "uniform": Wording("knows nothing"),
    "unigram_entropy": Wording("knows only how frequent pieces are"),
}
KINDS = {
    "text": (Wording("training text"), Wording("held-out text")),
    "task": (Wording("rows it learns from"), Wording("rows to measure on")),
}
"""What lines and dots stand for."""
PRETRAINING = (*OVER_PIECES, "replaced_token_loss", "loss")
GOALS = ("permutation", "causal", "replaced_token", "masked_diffusion", "masked_token")
ASIDE = ("step", "seconds", "tokens", "epoch")
ALWAYS = ("learning_rate", "gradient_norm", "tokens_per_second")
MOST_RUNS = 9
HELD_OUT = "validation_"


def name_of(key: str) -> str:
    """What a figure is called; one that nobody named is called as it is."""
    words = key.replace("_", " ")
    return NAMES.get(key) or words[:1].upper() + words[1:]


def chart(
    reports: Reports, run: str, others: Sequence[str], what: str | None, by: str
) -> dict[str, Any]:
    """The curves of a run, with those of others over it, or of a race.

    Args:
        reports: Read the run folders.
        run: The run, or the race.
        others: Runs to compare with.
        what: The figure that is asked for; one that the run has not gives way to its first.
        by: An axis of :data:`viz.training.AXES`.

    Raises:
        InputError: There is no such run or axis.
    """
    if by not in training.AXES:
        allowed = ", ".join(training.AXES)
        raise InputError(f"The axis is {by[:40]!r}; it must be one of {allowed}.")
    if len(others) >= MOST_RUNS:
        raise InputError(f"At most {MOST_RUNS} runs stand in one chart.")
    if run_config.kind_of(reports.runs.config(run)) == "race":
        found = run_races.live(reports.runs, run, reports.records_of)
        name = reports.summary(run)["name"]
        return _kept(json.dumps(plain(_race(found, name, what, by)), sort_keys=True))
    seen = [_run(reports, each) for each in (run, *others)]
    return _kept(json.dumps(plain(_runs(seen, what, by)), sort_keys=True))


@lru_cache(maxsize=64)
def _kept(values: str) -> dict[str, Any]:
    """The chart of plain values: whoever asks for the same gets the same."""
    found = json.loads(values)
    keys = [[key, told(name_of(key))] for key in found["keys"]]
    if not found["curves"]:
        return {"keys": keys, "what": None, "said": None, "figure": None, "small": None}
    key, by = found["what"], found["by"]
    figure = training.curves(
        [Curve(**each) for each in found["curves"]],
        [Baseline(name=untold(each["name"]), value=each["value"]) for each in found["baselines"]],
        key=found["measured"],
        name=name_of(key),
        by=by,
        title=found["title"],
        kinds=KINDS[found["kinds"]],
    )
    small = {name: [Curve(**each) for each in lines] for name, lines in found["small"].items()}
    return {
        "keys": keys,
        "what": key,
        "said": found["said"],
        "figure": drawn(figure),
        "small": drawn(training.several(small, {name: name_of(name) for name in small}, by=by))
        if small
        else None,
    }


def _points(records: Sequence[Mapping[str, Any]], key: str, by: str) -> list[tuple[float, float]]:
    return [
        (record[by], value)
        for record in records
        if isinstance(value := record.get(key), int | float) and value == value and by in record
    ]


def _run(reports: Reports, run: str) -> dict[str, Any]:
    summary = reports.summary(run)
    status = reports.runs.folder(run).status()
    return {
        "id": run,
        "name": summary["name"],
        "records": reports.records_of(run),
        "baselines": status.get("baselines") or {},
        "task": status.get("task"),
    }


def _keys(records: Sequence[Mapping[str, Any]], first: Sequence[str]) -> list[str]:
    """Figures of reports, what the run is for in front; held-out ones under their own name."""
    found = dict.fromkeys(key.removeprefix(HELD_OUT) for each in records for key in each)
    order = {key: place for place, key in enumerate(first)}
    return sorted((k for k in found if k not in ASIDE), key=lambda k: order.get(k, len(order)))


def _runs(seen: Sequence[dict[str, Any]], what: str | None, by: str) -> dict[str, Any]:
    first = seen[0]
    task = first["task"]
    by = "step" if by == "flops" else by
    keys = _keys(first["records"], (task["main"], "loss") if task else PRETRAINING)
    key = what if what in keys else next(iter(keys), None)
    labels = _labels(seen)
    found: dict[str, Any] = {"keys": keys, "what": key, "by": by, "measured": key, "curves": []}
    if key is None:
        return found | {"baselines": [], "small": {}, "title": "", "kinds": "text"}
    shown = []
    for number, each in enumerate(seen):
        for held_out, name in enumerate((key, HELD_OUT + key)):
            if points := _points(each["records"], name, by):
                found["curves"].append(
                    {
                        "name": labels[each["id"]],
                        "number": number,
                        "points": points,
                        "held_out": bool(held_out),
                    }
                )
                shown.append(each)
    accuracies = [k for k in keys if k.endswith("_accuracy")]
    small = {}
    for name in (*accuracies, *ALWAYS):
        lines = [
            {"name": labels[each["id"]], "number": number, "points": points}
            for number, each in enumerate(seen)
            if (points := _points(each["records"], name, by))
        ]
        if lines and lines[0]["number"] == 0:
            small[name] = lines
    return found | {
        "baselines": _baselines([each for each in seen if each in shown], key, labels),
        "small": small,
        "said": told(_newest(first["records"], key, bool(task))),
        "title": ", ".join(labels[each["id"]] for each in seen),
        "kinds": "task" if task else "text",
    }


def _newest(records: Sequence[Mapping[str, Any]], key: str, task: bool) -> str:
    """The last values of a figure, in words."""

    def last(name: str) -> tuple[str, str] | None:
        for record in reversed(records):
            if isinstance(value := record.get(name), int | float):
                shown = f"{100 * value:.1f} %" if training.is_share(key) else f"{value:.4g}"
                return f"{record['step']:,}", shown
        return None

    parts = []
    if now := last(key):
        parts.append(Wording("Step {0}: {1} in training.", *now))
    if held_out := last(HELD_OUT + key):
        parts.append(
            Wording("Step {0}: {1} on rows to measure on.", *held_out)
            if task
            else Wording("Step {0}: {1} on held-out text.", *held_out)
        )
    return Wording("{0} {1}", *parts) if len(parts) == 2 else parts[0] if parts else Wording("")


def _labels(seen: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Names of runs; those of one name bear the end of their id, too."""
    called = [each["name"] for each in seen]
    return {
        each["id"]: each["name"]
        if called.count(each["name"]) == 1
        else f"{each['name']} · {each['id'].rpartition('-')[2]}"
        for each in seen
    }


def _baselines(
    seen: Sequence[Mapping[str, Any]], key: str, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """What can be had without a model; what differs between runs bears their names."""
    groups: dict[tuple[str, float], list[str]] = {}
    for each in seen:
        for name, value in _of_one(each, key):
            groups.setdefault((json.dumps(told(name)), value), []).append(labels[each["id"]])
    found = []
    for (name, value), runs in groups.items():
        shown = json.loads(name)
        if len(runs) < len(seen):
            shown = ["{0} ({1})", shown, ", ".join(runs)]
        found.append({"name": shown, "value": value})
    return found


def _of_one(run: Mapping[str, Any], key: str) -> list[tuple[str, float]]:
    if run["task"]:
        listed = run["task"].get("baselines") or []
        return [
            (untold([each["title"]]), value)
            for each in listed
            if isinstance(value := each["metrics"].get(key), int | float)
        ]
    if key not in OVER_PIECES:
        return []
    return [
        (KNOWN.get(kind, kind), value)
        for kind, value in run["baselines"].items()
        if isinstance(value, int | float)
    ]


def _race(found: Mapping[str, Any], title: str, what: str | None, by: str) -> dict[str, Any]:
    """Every entrant of a race by one figure, or each by its own goal."""
    records = [record for each in found["series"].values() for record in each]
    measured = [k for k in _keys(records, ()) if k.endswith(("_loss", "_accuracy")) or k == "loss"]
    keys = ["own_loss", "own_accuracy", *measured]
    key = what if what in keys else keys[0]
    lines = []
    for number, row in enumerate(found["rows"]):
        goal = next((g for g in GOALS if g in row["objectives"]), next(iter(row["objectives"])))
        own = key.replace("own_", f"{goal}_") if key.startswith("own_") else key
        reported = found["series"].get(row["name"], [])
        if by == "flops":
            reported = [each | {"flops": each["step"] * row["flops_per_step"]} for each in reported]
        for held_out, name in enumerate((own, HELD_OUT + own)):
            if points := _points(reported, name, by):
                label = f"{row['name']} ({row['title']})"
                lines.append(
                    {"name": label, "number": number, "points": points, "held_out": bool(held_out)}
                )
    entropy = found["baselines"].get("unigram_entropy")
    baselines = []
    if key in ("masked_token_loss", "own_loss") and entropy:
        baselines = [{"name": told(KNOWN["unigram_entropy"]), "value": entropy}]
    return {
        "keys": keys,
        "what": key,
        "by": by,
        "measured": key,
        "curves": lines,
        "baselines": baselines,
        "small": {},
        "said": None,
        "title": title,
        "kinds": "text",
    }


def followed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The chart of a word over the snapshots of a run, from what the page has asked for.

    Raises:
        InputError: These are no steps with probabilities.
    """
    word, points = values.get("word"), values.get("points")
    fine = isinstance(points, list) and 0 < len(points) <= 200 and isinstance(word, str)
    if not fine or not all(map(_is_point, points)):
        raise InputError("A chart of a word needs its steps and probabilities.")
    title = (
        Wording("How sure the model is that “{0}” was put there", word[:64])
        if values.get("detects") is True
        else Wording("How likely “{0}” is in the first gap", word[:64])
    )
    steps = [(int(step), float(chance)) for step, chance in points]
    return {"figure": drawn(training.followed(steps, title=title))}


def _is_point(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], int)
        and isinstance(pair[1], int | float)
        and 0 <= pair[1] <= 1
    )
