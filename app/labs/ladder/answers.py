"""What the ladder's rungs changed, cost and reached. No Gradio in it.

Configs are those of :mod:`core_models.ladder`; what was reached stands in the file that
``python -m benchmarks.ladder`` wrote.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import plotly.graph_objects as go

from app.parts.plain import sentences, table
from core_models import InputError, diff
from core_models.counting.counts import count
from core_models.ladder import MEASURED, Rung, rungs
from core_models.training.folder import read_json
from viz.budget import short_number
from viz.ladder import Reached, climb
from viz.svg import Wording

LENGTH = 64
"""Tokens of the sequence whose operations are counted: as long as the examples."""
RUNGS = rungs()
DECAYS = {
    "linear": Wording("falls from the first step on"),
    "stable": Wording("stays, and falls in the last fifth"),
}
"""By ``Rung.decay``: what the learning rate does after its warm-up."""
Row = Mapping[str, Any]


class Measure(NamedTuple):
    """One figure of a rung."""

    title: str
    places: int
    """Decimal places that people read."""
    of: Callable[[Row], float]
    better: int
    """1 where more is better, -1 where less is."""

    def shown(self, value: float | None) -> str | None:
        """The figure as people read it; None = it is not measured."""
        return None if value is None else f"{value:,.{self.places}f}"


MEASURES = {
    "right": Measure(Wording("Pieces right, %"), 1, lambda row: 100 * row["accuracy"], 1),
    "perplexity": Measure(Wording("Perplexity"), 0, lambda row: row["perplexity"], -1),
    "pairs": Measure(Wording("Minimal pairs, %"), 1, lambda row: 100 * row["minimal_pairs"], 1),
    "speed": Measure(Wording("Tokens per second"), 0, lambda row: row["tokens_per_second"], 1),
    "tokens": Measure(Wording("Tokens read, millions"), 2, lambda row: row["tokens"] / 1e6, 1),
}
"""By what a link calls them."""
LEARNT = ("right", "perplexity", "pairs")
"""What chance moves: figures of a trained model."""


def read_rung(value: Any) -> int:
    """The number of a rung by its name; InputError where there is none."""
    names = [rung.name for rung in RUNGS]
    if value not in names:
        raise InputError(f"rung is {str(value)[:40]!r}; it must be one of {', '.join(names)}.")
    return names.index(value)


def read_measure(value: Any) -> str:
    """The name of a figure; InputError where there is none."""
    if not isinstance(value, str) or value not in MEASURES:
        known = ", ".join(MEASURES)
        raise InputError(f"measure is {str(value)[:40]!r}; it must be one of {known}.")
    return value


def reached() -> dict[str, Any]:
    """What is measured: figures by rung with the first seed (``rungs``) and another (``again``)."""
    return {"rungs": {}, "again": {}, **read_json(MEASURED)}


def title_of(number: int) -> str:
    """Number and title of a rung."""
    text = RUNGS[number].title
    return Wording("{0}. {1}", number, Wording(text))


def why(number: int) -> str:
    """What a rung changed and what for, with its source."""
    text = RUNGS[number].why
    return Wording("{0} (arXiv {1})", Wording(text), RUNGS[number].source)


def value(found: Mapping[str, Any], rung: Rung, name: str, kind: str = "rungs") -> float | None:
    """A figure of a rung; None where it is not measured."""
    row = found[kind].get(rung.name)
    return None if row is None else MEASURES[name].of(row)


def chance(found: Mapping[str, Any], name: str) -> float | None:
    """The largest difference between two seeds of one rung; None where there is none."""
    both = [
        (value(found, rung, name), value(found, rung, name, "again"))
        for rung in RUNGS
        if rung.name in found["again"]
    ]
    return max((abs(a - b) for a, b in both if a is not None and b is not None), default=None)


# --- what is shown --------------------------------------------------------------------------------


def chart(found: Mapping[str, Any], chosen: int, name: str) -> go.Figure:
    """One figure over all rungs."""
    measure = MEASURES[name]
    rows = [
        Reached(
            title=title_of(number),
            value=(first := value(found, rung, name)),
            shown=measure.shown(first) or "",
            again=value(found, rung, name, "again") if name in LEARNT else None,
        )
        for number, rung in enumerate(RUNGS)
    ]
    return climb(rows, chosen=chosen, figure=measure.title)


def said(found: Mapping[str, Any], number: int, name: str) -> str:
    """What the change bought in the chosen figure, beside what chance does."""
    measure = MEASURES[name]
    here = value(found, RUNGS[number], name)
    if here is None:
        return Wording("This rung is not measured yet.")
    if number == 0 or (before := value(found, RUNGS[number - 1], name)) is None:
        return ""
    gain = measure.better * (here - before)
    told = Wording(
        "{0}: from {1} to {2}.", measure.title, measure.shown(before), measure.shown(here)
    )
    if name not in LEARNT:
        return told
    noise = chance(found, name)
    if noise is None:
        return sentences(told, Wording("One seed: how much of it is chance is not measured."))
    if abs(gain) <= noise:
        verdict = Wording(
            "That is no more than chance: two seeds of one rung differ by {0}.",
            measure.shown(noise),
        )
    elif gain > 0:
        verdict = Wording(
            "It helped here, by more than two seeds of one rung differ ({0}).",
            measure.shown(noise),
        )
    else:
        verdict = Wording(
            "It cost something here, more than two seeds of one rung differ ({0}).",
            measure.shown(noise),
        )
    return sentences(told, verdict)


def changes(number: int) -> dict[str, Any] | None:
    """What ``cm.diff`` says of a rung and the one before, or the change of the recipe."""
    if number == 0:
        return None
    before, rung = RUNGS[number - 1], RUNGS[number]
    rows: list[list[Any]] = [
        [each.path, _plain(each.left), _plain(each.right)]
        for each in diff(before.config, rung.config)
    ]
    if before.decay != rung.decay:
        rows.append([Wording("learning rate"), DECAYS[before.decay], DECAYS[rung.decay]])
    columns = [Wording("What changed"), Wording("Before"), Wording("Now")]
    return table(Wording("cm.diff with the rung before"), columns, rows)


def _plain(value: Any) -> str:
    return "\N{EN DASH}" if value is None else json.dumps(value).replace('"', "")


@lru_cache(maxsize=16)
def _counted(number: int) -> tuple[int, float]:
    found = count(RUNGS[number].config)
    return found.pretraining, found.flops(LENGTH).per_token


def figures(found: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Counts and figures of a rung beside those of the rung before."""
    pair = [max(0, number - 1), number]
    rows: list[list[Any]] = [
        [Wording("Parameters"), *([_counted(n)[0], f"{_counted(n)[0]:,}"] for n in pair)],
        [
            Wording("Operations per token"),
            *([_counted(n)[1], short_number(_counted(n)[1])] for n in pair),
        ],
    ]
    for name, measure in MEASURES.items():
        values = [value(found, RUNGS[n], name) for n in pair]
        rows.append([measure.title, *([v, measure.shown(v)] if v else None for v in values)])
    columns = [Wording("Figure"), Wording("Before"), Wording("Now")]
    if number == 0:
        rows, columns = [[row[0], row[2]] for row in rows], [columns[0], columns[2]]
    return table(title_of(number), columns, rows)


def everything(found: Mapping[str, Any]) -> dict[str, Any]:
    """All figures of all rungs, second seeds below their firsts."""
    rows: list[list[Any]] = []
    for number, rung in enumerate(RUNGS):
        rows.append(_line(found, rung, title_of(number), "rungs"))
        if rung.name in found["again"]:
            rows.append(_line(found, rung, Wording("the same, another seed"), "again"))
    columns = [Wording("Rung"), Wording("Parameters"), *(m.title for m in MEASURES.values())]
    title = Wording("{0} minutes of one core each", f"{found.get('minutes', 0):g}")
    return table(title if found["rungs"] else Wording("Nothing is measured yet"), columns, rows)


def _line(found: Mapping[str, Any], rung: Rung, title: str, kind: str) -> list[Any]:
    parameters = _counted(RUNGS.index(rung))[0]
    line: list[Any] = [title, [parameters, f"{parameters:,}"]]
    for name, measure in MEASURES.items():
        here = value(found, rung, name, kind)
        line.append(None if here is None else [here, measure.shown(here)])
    return line


def code_lines(number: int) -> str:
    """Python that gives the same configs and their difference."""
    lines: Sequence[str] = [
        "import core_models as cm",
        "from core_models.ladder import rungs",
        "",
        f"before, rung = rungs()[{max(0, number - 1)}], rungs()[{number}]",
        "print(rung.title, rung.source)",
        "for change in cm.diff(before.config, rung.config):",
        "    print(change.path, change.left, change.right)",
        "print(cm.count(rung.config))",
    ]
    return "\n".join(lines)
