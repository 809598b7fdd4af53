"""The notebooks run from their first cell to their last, and hold no outputs.

Their code is run as Python and not by Jupyter, which nothing else here needs.
"""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import plotly.graph_objects as go
import plotly.io as pio
import pytest
from plotly.io.base_renderers import ExternalRenderer

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
STEPS = "steps = 1200  #"
"""What a test makes fewer of."""
FEWER = "steps = 52  #"
"""The recipe warms up for 50."""
FIGURES = {
    "attention_and_attribution": 3,
    "budget_and_families": 2,
    "fill_and_look_inside": 2,
    "pretraining_in_two_minutes": 1,
}


class Seen(ExternalRenderer):
    """Takes the place of the browser that ``figure.show()`` would open."""

    def __init__(self) -> None:
        self.figures: list[dict] = []

    def render(self, fig_dict: dict) -> None:
        self.figures.append(fig_dict)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    renderer = Seen()
    pio.renderers["seen"] = renderer
    monkeypatch.setattr(pio.renderers, "_default_renderers", [renderer])
    return renderer


def cells(notebook: Path, kind: str) -> list[str]:
    book = json.loads(notebook.read_text("utf-8"))
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == kind]


def code(notebook: Path) -> str:
    return "\n".join(cells(notebook, "code"))


def test_there_are_four() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(FIGURES)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_one_that_jupyter_opens_and_keeps_no_outputs(notebook: Path) -> None:
    book = json.loads(notebook.read_text("utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in book["cells"]]
    assert len(set(names)) == len(names)
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
    for text in cells(notebook, "markdown"):
        for link in re.findall(r"\]\((\.\.[^)#]+)", text):
            assert (notebook.parent / link).exists(), link


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.slow if "pretrain" in path.stem else ())
        for path in NOTEBOOKS
    ],
)
def test_a_notebook_runs(notebook: Path, seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    text = code(notebook)
    assert text.count(STEPS) == (notebook.stem == "pretraining_in_two_minutes")
    exec(compile(text.replace(STEPS, FEWER), notebook.name, "exec"), {"__name__": "__main__"})
    assert len(seen.figures) == FIGURES[notebook.stem]
    for figure in seen.figures:
        assert go.Figure(figure).data
    assert capsys.readouterr().out


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_first_cell_installs_where_nothing_is_installed(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("builtins.input", lambda asked: "https://example.org/cloze")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    monkeypatch.setattr(sys, "path", list(sys.path))
    exec(cells(notebook, "code")[0], {})
    assert ran[0][-2:] == ["https://example.org/cloze", "cloze"]
    assert ran[1][-2:] == ["-e", "cloze"]
    assert sys.path[-1] == "cloze"
