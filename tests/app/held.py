"""Answers of the server that a test holds back, leaves out or gives in another order."""

import re
from collections.abc import Callable, Iterator
from time import monotonic

from app.runs.data.texts import SHIPPED
from app.runs.runs import Runs
from core_models.training.race_folder import RaceFolder
from tests.app.test_train_browser import CONFIG
from tests.app.test_train_tasks import RACE
from tests.app.visitors import PAINTED, PATIENCE

BUSY = {"error": "Not now."}


class Held:
    """Requests that are answered when a test says so; those that ``what`` refuses go their way."""

    def __init__(self, page, pattern, what=lambda request: True):
        self.page, self.what, self.routes = page, what, []
        self.route = (re.compile(pattern), self.take)
        page.route(*self.route)

    def take(self, route):
        if self.what(route.request):
            self.routes.append(route)
        else:
            route.fallback()

    def wait(self, count=1):
        until = monotonic() + PATIENCE / 1000
        while len(self.routes) < count:
            assert monotonic() < until, f"asked {len(self.routes)} times, not {count}"
            self.page.evaluate(PAINTED)  # meanwhile Playwright hears of requests
        return self

    def give(self, values=None, which=0):
        """Let one be answered: by the server, or with these values."""
        route = self.routes.pop(which)
        if values is None:
            route.fallback()
        else:
            with self.page.expect_event("requestfinished", lambda it: it == route.request):
                route.fulfill(json=values)
        self.page.evaluate(PAINTED)

    def end(self):
        while self.routes:
            self.give()
        self.page.unroute(*self.route)


def posts(request) -> bool:
    return request.method == "POST"


def refuse_once(page, pattern, **kind):
    """The next answer is none: not even an error that the server has put into words."""
    page.route(re.compile(pattern), lambda route: route.fulfill(**kind or {"body": "-"}), times=1)


ROW = {
    "state": "finished",
    "family": "bert",
    "size": "bert-mini",
    "objectives": {"masked_token": 1.0},
    "parameters": 142_480,
    "generator_parameters": 0,
    "tokens": 3_360,
    "step": 30,
    "steps": 30,
    "held_out": {"masked_token_loss": 3.4, "replaced_token_loss": 0.5},
    "probes": {"sentiment": {"value": 0.6}, "nli": {"value": 0.5}},
    "words": {"accuracy": 0.3},
    "minimal_pairs": {"accuracy": 0.5},
    "flops_per_step": 1.0,
}
"""Of the table of a race."""


def finished_race(runs: Runs, name: str, rows: list[dict], **status) -> RaceFolder:
    """A race that is only files: its table is these rows, and no entrant has reported yet."""
    race = runs.folder(runs.create(RACE | {"name": name}))
    table = [ROW | row for row in rows]
    race.write_status({"state": "finished", "table": table, "probe_baselines": {}} | status)
    for row in table:
        race.run(row["name"]).path.mkdir()
    return race


def finished_runs(runs: Runs) -> Iterator[Callable[[str], str]]:
    """What a fixture yields: ``make(name)`` makes a finished run that is only files."""
    made = []
    data = CONFIG["data"] | {"texts": list(SHIPPED)[:1]}

    def make(name: str) -> str:
        run = runs.create(CONFIG | {"name": name, "data": data})
        folder = runs.folder(run)
        for step in (20, 40):
            report = {"step": step, "tokens": step, "seconds": 1.0, "loss": 6.0}
            folder.append_metrics(report | {"masked_token_loss": 6.0})
        folder.write_status({"state": "finished", "step": 40, "steps": 40})
        made.append(run)
        return run

    yield make
    for run in set(made) & set(runs.ids()):
        runs.delete(run)
