"""What is wrong with a fine-tuning: its labels, its figures beside the baselines, its curve."""

from collections.abc import Mapping
from statistics import median
from typing import Any

from app.runs.doctor.case import Case, Finding

_UNEVEN = 3
"""Labels are uneven when the commonest is this many times as frequent as the rarest."""
_NAMES = {
    "accuracy": "accuracy",
    "entity_f1": "F1",
    "micro_f1": "F1",
    "f1": "F1",
    "pearson": "correlation",
}

_LABEL = "who always gives the commonest label and never reads the text"
_SAME = {
    "classify": _LABEL,
    "pair": _LABEL,
    "multilabel": _LABEL,
    "regress": "who always gives the mean score and never reads the text",
    "tag": "who gives every word the commonest tag and never reads it",
    "answer": "who never gives an answer, whatever is asked",
}
"""By the kind of the set: who is no worse."""
_LOUDER = (
    "Train for more epochs with a learning rate three times higher, or start from a model that was "
    "pretrained for longer. Where one label is rare, add rows of it."
)
_MORE = (
    "Train for more epochs with a learning rate three times higher, start from a model that was "
    "pretrained for longer, and use more rows that have an answer: saying that there is none is "
    "learnt first."
)


def _task(case: Case) -> Mapping[str, Any]:
    found = case.status.get("task")
    return found if isinstance(found, Mapping) else {}


def _unbalanced(case: Case) -> Finding | None:
    """One label far more frequent than another: accuracy flatters who always says it."""
    task = _task(case)
    labels: Mapping[str, int] = (task.get("train") or {}).get("labels") or {}
    if task.get("kind") not in ("classify", "pair") or len(labels) < 2:
        return None
    common, rare = max(labels, key=labels.__getitem__), min(labels, key=labels.__getitem__)
    if labels[common] < _UNEVEN * labels[rare]:
        return None
    share = labels[common] / sum(labels.values())
    return Finding(
        kind="unbalanced",
        level="hint",
        title="The labels are unbalanced",
        text=f"{labels[common]:,} rows are “{common}” and {labels[rare]:,} are “{rare}”: whoever "
        f"always says “{common}” is right in {share:.0%} of the rows.",
        cure="Look at macro-F1 instead of accuracy; add rows of the rare labels, or leave out some "
        "of the frequent one.",
    )


def _baseline(case: Case) -> Finding | None:
    """The model beside what can be had without one, once half of the steps are made."""
    task = _task(case)
    main, records = task.get("main"), case.records
    # The weights that are kept are those of the end of an epoch.
    ends = {r.get("step") for r in records if float(r.get("epoch") or 0.0).is_integer()}
    measured = [pair for pair in case.series(f"validation_{main}") if pair[0] in ends]
    steps = int(case.status.get("steps") or 0)
    if not measured or not records or not steps or measured[-1][0] < 0.5 * steps:
        return None
    best = max(value for _, value in measured)
    known = {
        str(each["title"]): float(each["metrics"][main])
        for each in task.get("baselines") or []
        if isinstance(each["metrics"].get(main), int | float) and each["name"] != "from_scratch"
    }
    if not known:
        return None
    if (blind := _blind(case, best)) is not None:
        return blind
    title = max(known, key=known.__getitem__)
    name = _NAMES.get(str(main), str(main).replace("_", " "))
    if best < known[title] - 0.005:
        return Finding(
            kind="below_baseline",
            level="problem",
            title="It is worse than a method without a language model",
            text=f"Its best {name} on the rows to measure on is {best:.3f}; “{title}” reaches "
            f"{known[title]:.3f}.",
            cure="Train for more epochs, try a learning rate three times higher or lower, or start "
            "from a better pretrained checkpoint.",
        )
    if best < known[title] + 0.01:
        return None
    return Finding(
        kind="above_baseline",
        level="good",
        title="It beats what works without a language model",
        text=f"Its best {name} is {best:.3f}; “{title}” reaches {known[title]:.3f}.",
    )


def _blind(case: Case, best: float) -> Finding | None:
    """No better than one who gives the same answer to everything, and never looks."""
    task = _task(case)
    main = str(task.get("main"))
    values = [
        each["metrics"].get(main)
        for each in task.get("baselines") or []
        if each["name"] == "majority"
    ]
    if not values or not isinstance(values[0], int | float) or not best <= values[0] + 0.005:
        return None
    always, name = float(values[0]), _NAMES.get(main, main.replace("_", " "))
    kind = str(task.get("kind"))
    said = _SAME.get(kind, _LABEL)
    title = "It is no better than one answer to everything"
    silent = case.series("validation_no_answer_accuracy")
    if kind == "answer" and silent and silent[-1][1] >= 0.9:
        title = "It only learnt to answer nothing"
    return Finding(
        kind="same_answer",
        level="problem",
        title=title,
        text=f"Its best {name} on the rows to measure on is {best:.3f}, and {always:.3f} is what "
        f"one gets {said}.",
        cure=_MORE if kind == "answer" else _LOUDER,
    )


def _memorised(case: Case) -> Finding | None:
    """The loss on the rows to measure on rises while the training loss goes on falling."""
    if not _task(case):
        return None
    held_out, training = case.series("validation_loss"), case.series("loss")
    if len(held_out) < 3 or len(training) < 5:
        return None
    step, best = min(held_out, key=lambda pair: pair[1])
    last_step, last = held_out[-1]
    at_best = [value for when, value in training if when <= step][-3:]
    falling = at_best and median(value for _, value in training[-3:]) < median(at_best)
    if last_step == step or last < 1.15 * best + 0.02 or not falling or _better_since(case, step):
        return None
    return Finding(
        kind="memorised",
        level="hint",
        title="It learns the rows by heart",
        text=f"On rows it does not learn from the loss was best at step {step:,} ({best:.2f}) and "
        f"is {last:.2f} now, while the training loss went on falling. The model that is kept is "
        "that of the best epoch.",
        cure="Use fewer epochs, more rows, or freeze the lowest layers.",
    )


def _better_since(case: Case, step: int) -> bool:
    """Whether the figure by which models are compared rose since: a loss also asks how sure one is.

    Scores may come into their order while they drift away, labels be right and too sure.
    """
    figures = case.series(f"validation_{_task(case).get('main')}")
    before = [value for when, value in figures if when <= step]
    return bool(before) and figures[-1][1] > before[-1] + 0.02


RULES = (_unbalanced, _baseline, _memorised)
