"""Runs in words: states, facts, what may be done with one.

Texts are wordings, the page's language is its own matter. No Gradio in it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.runs.forms.words import duration, joined, many
from app.runs.reports.charts import name_of
from core_models.families import FAMILIES
from viz.svg import Wording, told
from viz.training import is_share

STATES = {
    "new": Wording("not started"),
    "queued": Wording("waiting"),
    "starting": Wording("starting"),
    "running": Wording("training"),
    "stopping": Wording("stopping"),
    "stopped": Wording("stopped"),
    "finished": Wording("finished"),
    "failed": Wording("failed"),
    "crashed": Wording("interrupted"),
    "waiting": Wording("waiting"),
    "measuring": Wording("measuring"),
}
ACTIVE = ("queued", "starting", "running", "stopping")
IDLE = ("new", "stopped", "failed", "crashed")
"""States from which a run goes on."""
LEAST_WAIT = 2
"""Seconds; what is shorter is over before it is read."""


def line(text: str | None) -> dict[str, Any]:
    """The value of a line or a heading."""
    return {"value": {"text": text or "", "told": told(text)}} if text else {"value": {"text": ""}}


def named(text: str) -> dict[str, Any] | str:
    """A text inside other values: the page fills in its language."""
    return {"told": told(text)} if isinstance(text, Wording) else text


def dotted(parts: Iterable[str | None]) -> str:
    """Facts in a row."""
    return joined("{0} · {1}", [part for part in parts if part])


def figure(key: str, value: float | None) -> str:
    """A figure of reports as people read it."""
    if value is None or value != value:
        return "\N{EN DASH}"
    if is_share(key):
        return f"{100 * value:.1f}\N{NO-BREAK SPACE}%"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3f}"


def names(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What runs are called, by id: those of one name bear the end of their id, too."""
    count = Counter(run["name"] for run in runs)
    return {
        run["id"]: run["name"]
        if count[run["name"]] == 1
        else f"{run['name']} · {run['id'].rpartition('-')[2]}"
        for run in runs
    }


def model(described: Mapping[str, Any]) -> str:
    """What learns: a family with its shape, a checkpoint, or several."""
    if described.get("race"):
        return Wording("race of {0}", described["race"])
    if described.get("from"):
        return Wording("from {0}", described["from"])
    if not described.get("family"):
        return ""
    family = FAMILIES[described["family"]].title
    return f"{family} {described['layers']} \N{MULTIPLICATION SIGN} {described['width']}"


def waits(run: Mapping[str, Any]) -> list[str]:
    """Where a run stands in the queue and how long that will last, as far as that is known."""
    if not run["place"]:
        return []
    wait = run["wait_seconds"] or 0
    soon = wait >= LEAST_WAIT
    return [
        Wording("place {0} in the queue", run["place"]),
        *([Wording("about {0} until it starts", duration(wait))] if soon else []),
    ]


def state(run: Mapping[str, Any]) -> str:
    """What a run does: one that has made all its steps measures what it has learnt."""
    done = run["state"] == "running" and run["step"] == run["steps"] > 0
    return STATES["measuring"] if done else STATES.get(run["state"], run["state"])


def progress(run: Mapping[str, Any]) -> str:
    """How far a run is; nothing while it waits for its first step."""
    if not run["steps"] or (not run["step"] and run["state"] in ("new", "queued", "starting")):
        return ""
    step, steps = f"{run['step']:,}", f"{run['steps']:,}"
    if run["kind"] == "race":
        return Wording("step {0} of {1} in all", step, steps)
    return Wording("step {0} of {1}", step, steps)


def silence(run: Mapping[str, Any]) -> float | None:
    """Seconds for which its process has given no sign of life, where that is long."""
    return run["silent_seconds"] if run["state"] in ACTIVE[1:] else None


def entry(run: Mapping[str, Any], name: str, *, mine: bool) -> str:
    """A run in the list: its name, and below it how it stands."""
    main, last = run["main"], run["last"]
    loss = last.get("masked_token_loss", last.get("loss"))
    reached: str | None = None
    if main and main["value"] is not None:
        reached = Wording("{0} {1}", name_of(main["name"]), figure(main["name"], main["value"]))
    elif loss is not None and loss == loss:
        reached = Wording("loss {0}", f"{loss:.2f}")
    quiet = silence(run)
    far = f"{100 * run['step'] // run['steps']}\N{NO-BREAK SPACE}%" if run["steps"] else None
    below = dotted(
        [
            state(run),
            far if run["state"] in ("running", "stopping", "stopped", "crashed") else None,
            *waits(run),
            Wording("your run") if mine else None,
            model(run["model"]),
            reached,
            Wording("no sign of life for {0}", duration(quiet)) if quiet else None,
        ]
    )
    return Wording("{0}\n {1}", name, below)  # another joint than that of sentences


def facts(run: Mapping[str, Any], live: Mapping[str, Any], *, owned: bool) -> str:
    """How a run stands, in a row."""
    speed, left = run["last"].get("tokens_per_second"), run["seconds_left"]
    task, data = live["task"] or {}, live["data"]
    device = str(live["environment"].get("device") or "")
    what = model(run["model"])
    return dotted(
        [
            state(run),
            Wording("{0}, {1}", task["set"], what) if task.get("set") else what,
            Wording("{0} parameters", many(run["parameters"])) if run["parameters"] else None,
            progress(run),
            Wording("{0} tokens/s", f"{speed:,.0f}")
            if run["state"] == "running" and speed
            else None,
            Wording("about {0} left", duration(left)) if left is not None else None,
            *waits(run),
            None if owned else Wording("started from another browser"),
            Wording(
                "{0} pieces of text, vocabulary {1}",
                f"{data['tokens']:,}",
                f"{data['vocabulary']:,}",
            )
            if data.get("tokens")
            else None,
            Wording("on {0}", "CPU" if device == "cpu" else device) if device else None,
        ]
    )


def hangs(run: Mapping[str, Any]) -> str:
    """A hint that a process has not written its heartbeat for long."""
    if not (quiet := silence(run)):
        return ""
    return Wording(
        "The process has given no sign of life for {0}. It may be busy with one long step, or it "
        "hangs. If nothing changes, stop it and continue it: nothing up to the last checkpoint is "
        "lost.",
        duration(quiet),
    )
