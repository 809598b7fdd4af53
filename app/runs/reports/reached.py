"""What models reached: a fine-tuned one, and those of a race.

Values of components by their names, as in :mod:`app.runs.reports.shown`. No Gradio in it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.parts.figure import drawn
from app.parts.plain import table
from app.runs.forms import tasks as run_tasks
from app.runs.forms.words import many, ours
from app.runs.reports.charts import name_of
from app.runs.reports.told import STATES, dotted, figure, line
from app.runs.runs import Runs
from core_models import InputError
from viz import results
from viz.svg import Wording
from viz.training import is_share

Parts = dict[str, dict[str, Any]]
MOST_LABELS = 30
"""In a confusion matrix."""
MOST_ROWS = 8
PROBES = {"sentiment": "sentiment", "topic": "topic", "nli": "inference"}
NOTHING = {"visible": False}


# --- a race ---------------------------------------------------------------------------------------


def chosen(race: Mapping[str, Any], wanted: str | None) -> dict[str, Any] | None:
    """Whose model a page looks at: the one that it wants, else the first."""
    rows = {row["name"]: row for row in race["rows"]}
    row = rows.get(wanted or "") or next(iter(rows.values()), None)
    if row is None:
        return None
    model = next((name for name in race["models"] if name.endswith(f"/{row['name']}")), None)
    return {
        "name": row["name"],
        "model": model if row["state"] == "finished" else None,
        "detects": "replaced_token" in row["objectives"],
    }


def race_parts(race: Mapping[str, Any] | None, entrant: Mapping[str, Any] | None) -> Parts:
    """The table of a race, and whose model is looked at."""
    if race is None or entrant is None:
        return {
            "race": NOTHING,
            "whose": NOTHING,
            "table": {"value": None},
            "failures": line(None),
        }
    rows = [row["name"] for row in race["rows"]]
    failed = [f"{row['name']}: {row['reason']}" for row in race["rows"] if row.get("reason")]
    return {
        "race": {"visible": True},
        "whose": {"visible": True, "choices": [[n, n] for n in rows], "value": entrant["name"]},
        "table": {"value": _race_table(race)},
        "failures": {"value": {"text": "\n".join(failed)}},
    }


def _race_table(race: Mapping[str, Any]) -> dict[str, Any]:
    rows, yard = race["rows"], race["probe_baselines"]
    probes = list(dict.fromkeys([*(p for row in rows for p in row.get("probes") or ()), *yard]))
    more = {"words": Wording("hidden words"), "minimal_pairs": Wording("minimal pairs")}
    more = {key: name for key, name in more.items() if any(row.get(key) for row in rows)}
    heads = [
        Wording("Model"),
        Wording("State"),
        Wording("Parameters"),
        Wording("Tokens"),
        *(Wording("probe: {0}", ours(PROBES.get(each, each))) for each in probes),
        *more.values(),
        Wording("Held-out loss"),
    ]

    def share(found: Any, key: str) -> Any:
        value = (found or {}).get(key)
        return None if value is None else [value, f"{100 * value:.1f}\N{NO-BREAK SPACE}%"]

    lines = [
        [
            row["name"],
            f"{row['step']:,} / {row['steps']:,}"
            if row["state"] == "running"
            else STATES.get(row["state"], row["state"]),
            [
                row["parameters"] + row["generator_parameters"],
                many(row["parameters"] + row["generator_parameters"]),
            ],
            [row["tokens"], many(row["tokens"])] if row.get("tokens") else None,
            *(share((row.get("probes") or {}).get(each), "value") for each in probes),
            *(share(row.get(key), "accuracy") for key in more),
            _losses(row.get("held_out") or {}),
        ]
        for row in rows
    ]
    for key, name in (("majority", Wording("majority")), ("bag_of_words", Wording("bag of words"))):
        values = [share(yard.get(each), key) for each in probes]
        if any(values):
            without = Wording("without any model: {0}", name)
            lines.append([without, "", None, None, *values, *([None] * len(more)), ""])
    return table(Wording("What each model reached"), heads, lines)


def _losses(found: Mapping[str, float]) -> str:
    return dotted(
        Wording("{0} {1}", name_of(key), f"{value:.3f}")
        for key, value in found.items()
        if key.endswith("_loss") and value is not None
    )


# --- a fine-tuning --------------------------------------------------------------------------------


def result_parts(runs: Runs, run: str, live: Mapping[str, Any]) -> Parts:
    """What a finished fine-tuning was measured at."""
    try:
        found = run_tasks.result(runs, run) if live["evaluated"] else None
    except InputError:
        found = None
    task = live["task"] or {}
    if not found or not task:
        return {"result": NOTHING}
    main, labels = found["main"], list(task.get("labels") or ())
    rows = [(Wording("this model"), found["metrics"])]
    rows += [(ours(each["title"]), each["metrics"]) for each in task.get("baselines") or ()]
    bars = [(who, each[main]) for who, each in rows if each.get(main) is not None]
    calibrated = found.get("figure")
    return {
        "result": {"visible": True},
        "summary": line(
            Wording(
                "{0} {1} on the rows to measure on ({2}), after epoch {3}, its best.",
                name_of(main),
                figure(main, found["metrics"][main]),
                f"{task['dev']['rows']:,}",
                found["best_epoch"],
            )
        ),
        "reached": {
            "value": drawn(results.reached(bars, name=name_of(main), share=is_share(main)))
            if bars
            else None
        },
        "metrics": {"value": _metrics(rows)},
        **_confusion(labels, found["confusion"]),
        "labels": {"value": _labels(found["labels"])},
        "calibration": {"value": calibrated},
        "sure_of": line(
            Wording(
                "Does it know how sure it may be? Each dot: predictions of about one probability, "
                "and how many of them are right. On the dashed line both agree; the mean distance "
                "is {0} %.",
                f"{100 * found['calibration']['error']:.1f}",
            )
            if calibrated
            else None
        ),
        "worst": {"value": _rows(found["worst"], task, wrong=True)},
        "no_worst": line(
            None if found["worst"] else Wording("Every row to measure on was answered rightly.")
        ),
        "surest": {"visible": bool(found["best"])},
        "best": {"value": _rows(found["best"], task, wrong=False)},
    }


def _confusion(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Parts:
    """What the model takes for what, or why that is not drawn; nothing where none was counted."""
    if not labels or not counts:
        return {"confusion": {"value": None}, "no_confusion": line(None)}
    if len(labels) <= MOST_LABELS:
        figure = drawn(results.confusion(labels, counts))
        return {"confusion": {"value": figure}, "no_confusion": line(None)}
    why = Wording(
        "No confusion matrix: the set has {0} labels, and one shows {1} at most. The figures of "
        "each label stand under “All figures”.",
        len(labels),
        MOST_LABELS,
    )
    return {"confusion": {"value": None}, "no_confusion": line(why)}


def _metrics(rows: Sequence[tuple[str, Mapping[str, float]]]) -> dict[str, Any]:
    keys = list(rows[0][1])
    cells = [
        [who, *([each[key], figure(key, each[key])] if key in each else None for key in keys)]
        for who, each in rows
    ]
    return table(Wording("All figures"), [Wording("Method"), *map(name_of, keys)], cells)


def _labels(found: Mapping[str, Mapping[str, float]]) -> dict[str, Any] | None:
    if not found:
        return None
    heads = ["Label", "Precision (P)", "Recall (R)", "F1", "Rows"]
    rows = [
        [
            name,
            *([each[key], figure(key, each[key])] for key in ("precision", "recall", "f1")),
            each["support"],
        ]
        for name, each in found.items()
    ]
    return table(Wording("Label by label"), [ours(head) for head in heads], rows)


def _rows(
    found: Sequence[Mapping[str, Any]], task: Mapping[str, Any], *, wrong: bool
) -> dict[str, Any] | None:
    """Rows that were answered wrongly, or rightly and for sure."""
    if not found:
        return None
    pairs = any(row.get("pair") for row in found)
    heads = [Wording("Text"), *([Wording("Second text")] if pairs else [])]
    heads += [Wording("The model says"), *([Wording("Right")] if wrong else [])]
    rows = [
        [
            row["text"],
            *([row.get("pair") or ""] if pairs else []),
            _answer(row, row["said"], task),
            *([_answer(row, row["expected"], task)] if wrong else []),
        ]
        for row in found[:MOST_ROWS]
    ]
    caption = Wording("Its worst mistakes") if wrong else Wording("What it is surest of")
    return table(caption, heads, rows)


def _answer(row: Mapping[str, Any], said: Any, task: Mapping[str, Any]) -> str:
    """What was said about a row: a label, a score, an answer, or the words with a tag."""
    if task["kind"] == "tag":
        tags = said if isinstance(said, list) else str(said or "").split(" ")
        words = row["text"].split(" ")
        if len(tags) == len(words):
            named_ = [f"{w} {tag}" for w, tag in zip(words, tags, strict=True) if tag != "O"]
            return ", ".join(named_) or Wording("no name")
    several = task["kind"] == "multilabel"
    if isinstance(said, list):
        said = (", " if several else " ").join(map(str, said))
    if isinstance(said, int | float):
        return f"{said:.2f}"
    return str(said) if said else Wording("no label") if several else Wording("no answer")
