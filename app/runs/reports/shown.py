"""What the page shows of runs: new properties of its components, by their names.

A page asks again and again (:mod:`app.runs.routes`), outside Gradio's events, and says what it has
already: of each section it gets only what is different. No Gradio in it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

from app.runs import damage
from app.runs.forms import races as run_races
from app.runs.reports import reached, sections
from app.runs.reports.reports import Reports, plain
from app.runs.reports.sections import Parts, Wish
from app.runs.reports.told import ACTIVE, entry, line, named, names
from app.runs.reports.tried import try_parts
from core_models import InputError
from viz.svg import Wording

Section = tuple[Any, Callable[[], Parts]]
"""What a section depends on, None where making it tells; and what makes it."""


class Shown:
    """Answers pages.

    Args:
        reports: Read the run folders.
    """

    def __init__(self, reports: Reports) -> None:
        self.reports, self.runs = reports, reports.runs

    def answer(self, values: Mapping[str, Any], owner: str | None) -> dict[str, Any]:
        """What is new for a page.

        Args:
            values: Its wish (:class:`Wish`), and ``seen``: marks of the sections that it has.
            owner: The secret of its browser.

        Returns:
            ``parts``, ``seen``, ``names`` of all runs, whether a run is at work (``busy``), and
            what the page asked for as far as it is there: ``run``, ``kind`` and ``others``; of a
            page that asked for none, ``first`` is the run to begin with.
        """
        listed = self.reports.overview()
        wish = Wish.read(values)
        known = {run["id"]: run for run in listed}
        run = known.get(wish.run or "")
        others = [
            each
            for each in wish.others
            if run and each in known and each != wish.run and known[each]["kind"] == run["kind"]
        ]
        wish = Wish(**{**vars(wish), "run": run["id"] if run else None, "others": tuple(others)})
        shown: dict[str, Section] = {"list": (None, lambda: self._list(listed, owner))}
        seen = values.get("seen")
        with damage.readable(wish.run or ""):
            if run:
                shown |= self._sections(run, listed, wish, owner)
            marks, parts = _new(shown, seen if isinstance(seen, Mapping) else {})
        begun = [each["id"] for each in listed if each["last"].get("loss") is not None]
        return {
            "parts": parts,
            "seen": marks,
            "names": names(listed),
            "busy": any(each["state"] in ACTIVE for each in listed),
            "run": wish.run,
            "kind": run["kind"] if run else None,
            "others": others,
            "first": next(iter(begun), None),
        }

    def _list(self, listed: list[dict[str, Any]], owner: str | None) -> Parts:
        called = names(listed)
        mine = {run["id"]: self.may_change(run["id"], owner) for run in listed}
        several = not all(mine.values())  # where all are one's own, nothing is to be told apart
        choices = [
            [named(_entry(run, called[run["id"]], mine=several and mine[run["id"]])), run["id"]]
            for run in listed
        ]
        return {
            "list": {"choices": choices},
            "none": line(None if listed else Wording("No runs yet.")),
            "new": {"interactive": self.runs.enabled},
        }

    def may_change(self, run: str, owner: str | None) -> bool:
        """Whether a browser with this secret may stop and delete a run."""
        try:
            return self.runs.may_change(run, owner)
        except InputError:
            return False  # deleted since it was listed

    def _sections(
        self, run: dict[str, Any], listed: list[dict[str, Any]], wish: Wish, owner: str | None
    ) -> dict[str, Section]:
        name = run["id"]
        live = self.reports.live(name, owner=owner)
        race = None
        if run["kind"] == "race":
            race = run_races.live(self.runs, name, self.reports.records_of)
        entrant = reached.chosen(race, wish.entrant) if race else None
        failed = any(row["state"] == "failed" for row in race["rows"]) if race else False
        owned = self.may_change(name, owner)
        may = owned and self.runs.enabled
        others = sections.comparable(run, listed)
        reports = [
            (self.reports.generation(each), len(self.reports.records_of(each)))
            for each in (name, *wish.others)
        ]
        if race:
            reports = [(row["name"], row["step"]) for row in race["rows"]]
        validated = (live["validated"], sections.validated_at(race, entrant))
        return {
            "head": (None, lambda: sections.head(run, live, owned)),
            "acts": (
                None,
                lambda: sections.acts(
                    run, live, entrant, may=may, enabled=self.runs.enabled, failed=failed
                ),
            ),
            "chart": (
                (wish, others, reports, len((live["task"] or {}).get("baselines") or ())),
                lambda: sections.chart(self.reports, run, others, wish),
            ),
            "race": (None, lambda: reached.race_parts(race, entrant)),
            "doctor": (None, lambda: sections.doctor(live, bool(race))),
            "examples": (
                (name, entrant and entrant["name"], validated),
                lambda: sections.examples(self.reports, name, entrant),
            ),
            "scrub": (None, lambda: sections.scrub(run, live)),
            "settings": (
                None,
                lambda: sections.settings(self.reports, run, live, wish, names(listed)),
            ),
            "result": (
                (name, live["evaluated"] and run["updated"]),
                lambda: reached.result_parts(self.runs, name, live),
            ),
            "try": ((name, bool(live["model"])), lambda: try_parts(live)),
        }


def _entry(run: dict[str, Any], name: str, *, mine: bool) -> str:
    """A run in the list; of one whose figures are no figures, that it failed."""
    try:
        with damage.readable(run["id"]):
            return entry(run, name, mine=mine)
    except damage.DamagedError as error:
        return entry(damage.in_short(run["id"], str(error)), name, mine=mine)


def _new(shown: Mapping[str, Section], before: Mapping[str, Any]) -> tuple[dict[str, int], Parts]:
    """The marks of all sections, and what is in those that a page does not have."""
    marks: dict[str, int] = {}
    parts: Parts = {}
    for name, (depends, make) in shown.items():
        found = plain(make()) if depends is None else None
        marks[name] = crc32(json.dumps(found or repr(depends), sort_keys=True).encode())
        if before.get(name) != marks[name]:
            parts |= plain(make()) if found is None else found
    return marks, parts
