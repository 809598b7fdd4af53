"""Sections of what the page shows of a run: each gives properties of components by their names.

No Gradio in it; :mod:`app.runs.reports.shown` says which of them are new for a page.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.parts.plain import table
from app.runs.doctor.doctor import FEWEST
from app.runs.forms.words import size
from app.runs.reports import charts as run_charts
from app.runs.reports.reports import Reports
from app.runs.reports.told import ACTIVE, IDLE, facts, hangs, line, named, names
from app.runs.unplaced import unplaced
from core_models import InputError
from viz.svg import Wording

MOST_COMPARED = 8
AXES = {
    "step": Wording("steps"),
    "tokens": Wording("tokens"),
    "flops": Wording("operations"),
    "seconds": Wording("time"),
}
LEVELS = {"problem": Wording("Problem"), "hint": Wording("Hint"), "good": Wording("Good")}
HIDDEN = {"visible": False}
Parts = dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a page wants to see."""

    run: str | None
    others: tuple[str, ...] = ()
    """Runs to compare with."""
    what: str | None = None
    """The figure of the chart; None = what the run is for."""
    by: str = "step"
    entrant: str | None = None
    """Of a race, whose model is opened and whose examples are shown."""

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "Wish":
        """From plain values; what is no text counts as nothing."""

        def text(name: str) -> str | None:
            found = values.get(name)
            return found[:200] if isinstance(found, str) and found else None

        listed = values.get("with")
        others = (
            [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
        )
        return cls(
            run=text("run"),
            others=tuple(dict.fromkeys(others[:MOST_COMPARED])),
            what=text("what"),
            by=text("by") or "step",
            entrant=text("entrant"),
        )


def head(run: dict[str, Any], live: dict[str, Any], owned: bool) -> Parts:
    """How a run is called and how it stands."""
    # The reports of a race are those of its models, and its step counts theirs.
    reported = run["step"] if run["kind"] == "race" else live["records"]
    early = not reported and run["state"] in ("starting", "running")
    return {
        "title": line(Wording("{0}", run["name"])),
        "facts": line(facts(run, live, owned=owned)),
        "silent": line(hangs(run)),
        # A message of the trainer, which the page finds by its pattern.
        "reason": {"value": {"text": run["reason"] or ""}},
        "early": line(
            Wording(
                "The curve starts with the first report. Preparing the text and the vocabulary "
                "comes first."
            )
            if early
            else None
        ),
    }


def acts(
    run: dict[str, Any],
    live: dict[str, Any],
    entrant: dict[str, Any] | None,
    *,
    may: bool,
    enabled: bool,
    failed: bool = False,
) -> Parts:
    """What may be done with a run.

    Args:
        run: In short.
        live: Its report.
        entrant: Of a race, whose model is looked at.
        may: Whether this browser may stop and delete it.
        enabled: Whether this server trains.
        failed: Whether a model of a race has failed.
    """
    state, race = run["state"], run["kind"] == "race"
    model = entrant["model"] if entrant else None if race else live["model"]
    detects = entrant["detects"] if entrant else live["detects"]
    file = None if race else live["export"]
    ended = state == "finished" and failed
    go_on = Wording("Continue") if run["step"] else Wording("Start")
    again = Wording("New race from this one") if race else Wording("New run from this one")
    return {
        "stop": {"visible": may and state in ACTIVE, "interactive": state != "stopping"},
        "resume": {
            "visible": may and (state in IDLE or ended),
            "value": named(Wording("Try again what failed") if ended else go_on),
        },
        "open": {
            "visible": bool(model) and run["kind"] != "task",
            "value": named(
                Wording("Let it find replaced words") if detects else Wording("Fill gaps with it")
            ),
        },
        "attend": {"visible": bool(model)},
        "tune": {"visible": bool(model) and run["kind"] == "pretraining" and enabled},
        "again": {"visible": enabled, "value": named(again)},
        "download": {
            "visible": True,
            "link": f"train/runs/{run['id']}/model.zip",
            "value": named(
                Wording(
                    "Download the model (step {0}, {1})",
                    f"{file['step']:,}",
                    size(file["bytes"]),
                )
            ),
        }
        if file
        else HIDDEN,
        "delete": {"visible": may and state not in ACTIVE},
        "opens": {"value": {"model": model, "detects": detects}},
    }


def chart(
    reports: Reports,
    run: dict[str, Any],
    others: list[tuple[str, str]],
    wish: Wish,
) -> Parts:
    """The curves of a run with those of others, or of a race."""
    race = run["kind"] == "race"
    axes = {key: name for key, name in AXES.items() if race or key != "flops"}
    by = wish.by if wish.by in axes else next(iter(axes))
    found = run_charts.chart(reports, run["id"], wish.others, wish.what, by)
    if not found["figure"]:
        return {"curves": HIDDEN, "chart": {"value": None}, "small": {"value": None}}
    told = found["said"]
    return {
        "curves": {"visible": True},
        "what": {
            "choices": [
                [{"told": name} if isinstance(name, list) else name, key]
                for key, name in found["keys"]
            ],
            "value": found["what"],
        },
        "by": {"choices": [[named(name), key] for key, name in axes.items()], "value": by},
        "compare": {
            "choices": [list(each) for each in others],
            "value": list(wish.others),
            "visible": bool(others),
        },
        "csv": {"link": f"train/runs/{run['id']}/reports.csv", "visible": not race},
        "chart": {"value": found["figure"]},
        "said": {"value": {"text": " " if told else "", "told": told}},
        "small": {"value": found["small"]},
    }


def examples(reports: Reports, run: str, entrant: dict[str, Any] | None) -> Parts:
    """Held-out examples of a run, or of one in a race."""
    try:
        found = reports.examples(run, entrant["name"] if entrant else None)
    except InputError:
        found = {}  # before the first validation
    shown = bool(found.get("worst"))
    return {"held_out": {"visible": shown}, "examples": {"value": found if shown else None}}


def settings(
    reports: Reports, run: dict[str, Any], live: dict[str, Any], wish: Wish, called: dict[str, str]
) -> Parts:
    """What a run was asked to do, and what it has logged."""
    config, root = reports.runs.as_form(run["id"]), reports.runs.root
    differs = _difference(reports, run["id"], wish.others, called) if wish.others else None
    return {
        "log": {"value": "\n".join(live["log"])},
        "config": {"value": unplaced(json.dumps(config, indent=2, ensure_ascii=False), root)},
        "command": {"value": live["command"]},
        "differs": {"value": differs},
    }


def _difference(
    reports: Reports, run: str, others: tuple[str, ...], called: dict[str, str]
) -> dict[str, Any] | None:
    """What differs between runs, settings that were left out with their defaults."""
    listed = [_leaves(reports.settings(each)) for each in (run, *others)]
    root = reports.runs.root
    found = [
        {path: unplaced(value, root) for path, value in each if value != "null"} for each in listed
    ]
    paths = sorted({path for each in found for path in each})
    rows = [
        [path, *(each.get(path, Wording("not set")) for each in found)]
        for path in paths
        if path not in ("name", "description") and len({each.get(path) for each in found}) > 1
    ]
    heads = [Wording("Setting"), *(called[each] for each in (run, *others))]
    if not rows:
        rows = [[Wording("The settings are the same."), *([""] * len(found))]]
    return table(Wording("How the settings differ"), heads, rows)


def comparable(
    run: Mapping[str, Any], listed: Sequence[Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """Runs whose curves may stand over those of a run: what they are called, and they."""
    called = names(listed)
    return [
        (called[each["id"]], each["id"])
        for each in listed
        if each["kind"] == run["kind"] != "race"
        and each["id"] != run["id"]
        and each["last"].get("loss") is not None
    ]


def validated_at(race: Mapping[str, Any] | None, entrant: Mapping[str, Any] | None) -> int | None:
    """At which step the entrant of a race was validated last."""
    if race is None or entrant is None:
        return None
    reports = race["series"].get(entrant["name"], [])
    validated = (
        each["step"] for each in reversed(reports) if any("validation_" in k for k in each)
    )
    return next(validated, None)


def _leaves(value: Any, path: str = "") -> list[tuple[str, str]]:
    if not isinstance(value, Mapping):
        return [(path, json.dumps(value, ensure_ascii=False))]
    return [
        leaf
        for key, child in value.items()
        for leaf in _leaves(child, f"{path}.{key}" if path else str(key))
    ]


def doctor(live: Mapping[str, Any], race: bool) -> Parts:
    """What the curve says: each finding with its cure."""
    found = live["findings"]
    if race or not (live["records"] or found):
        return {"doctor": HIDDEN}
    heads = [Wording("Kind"), Wording("What the curve says")]
    if not found:
        calm = [LEVELS["good"], Wording("Nothing conspicuous so far.")]
        if len(live["records"]) < FEWEST and not live["task"]:
            few = Wording("Too few reports to tell yet: a curve is judged from {0} on.", FEWEST)
            calm = [LEVELS["hint"], few]
        return {"doctor": {"visible": True}, "findings": {"value": table("", heads, [calm])}}
    rows = [
        [
            LEVELS[each["level"]],
            "\n".join(filter(None, (each["title"], each["text"], each["cure"]))),
        ]
        for each in found
    ]
    return {
        "doctor": {"visible": True},
        "findings": {"value": table("", heads, rows, messages=[1])},
    }


def scrub(run: Mapping[str, Any], live: Mapping[str, Any]) -> Parts:
    """The snapshots of a run, and behind them the newest model where it is one of a later step."""
    snapshots = live["snapshots"]
    stops = [{"ask": step, "at": step, "id": str(step)} for step in snapshots]
    newest = (
        live["export"]["step"] if live["export"] else (0 if run["state"] in ACTIVE else run["step"])
    )
    if live["model"] and snapshots and newest > snapshots[-1]:
        stops.append({"ask": "last", "at": newest, "id": f"last-{newest}"})
    values = {
        "run": run["id"],
        "stops": stops,
        "detects": live["detects"],
        "finished": run["state"] == "finished",
    }
    return {"snapshots": {"visible": bool(stops)}, "scrub": {"value": values if stops else None}}
