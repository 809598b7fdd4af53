"""Files and code that the modes of the Attention tab give away: they hold the shown numbers."""

import csv
import io
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.app.attention_lab import HIDDEN, SECOND, ask, grid, save

QUESTIONS = {
    "combined": {"picks": [[0, 0], [1, 1]]},
    "rollout": {},
    "norms": {"layer": 0, "head": 0},
    "off": {"off": [[0, 1]], "marks": HIDDEN, "sweep": True},
    "products": {"layer": 0, "head": 0},
    "compare": {"other": "t-albert"},
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_files_open_and_hold_the_numbers(lab, kind):
    drawing = save(lab, kind, "svg", **QUESTIONS[kind])
    assert drawing["name"] == f"attention-{kind}.svg"
    assert "dog" in "".join(ElementTree.fromstring(drawing["text"]).itertext()) or kind == "off"
    rows = list(csv.reader(io.StringIO(save(lab, kind, "csv", **QUESTIONS[kind])["text"])))
    shown = grid(ask(lab, kind, **QUESTIONS[kind]))
    again = [[float(cell) for cell in row[1:]] for row in rows[2 : 2 + len(shown)]]
    np.testing.assert_allclose(again, np.nan_to_num(shown), rtol=1e-4, atol=1e-6)
    if kind == "off":
        assert len([row for row in rows if row and row[0].startswith("layer ")]) == 4  # corner too
    assert save(lab, kind, "exe", **QUESTIONS[kind])["error"]


@pytest.mark.parametrize("kind", [kind for kind in QUESTIONS if kind != "compare"])
def test_the_code_shown_recomputes_the_numbers(lab, kind, monkeypatch):
    values = {key: value for key, value in QUESTIONS[kind].items() if key != "sweep"}
    answer = ask(lab, kind, second=SECOND, **values)
    lines = answer["code"].splitlines()
    names: dict[str, object] = {}
    expressions = []
    for line in lines:  # lines that are values, as a console would show them
        try:
            compile(line, "", "eval")
        except SyntaxError:
            exec(line, names)
        else:
            expressions.append(eval(line, names))
    if kind in ("combined", "norms"):
        found = names["weights" if kind == "combined" else "norms"]
        np.testing.assert_allclose(grid(answer, 0 if kind == "combined" else 1), found, atol=1e-5)
    if kind == "rollout":
        np.testing.assert_allclose(grid(answer, 1), expressions[-2], atol=1e-6)
        np.testing.assert_allclose(grid(answer)[2], expressions[-1], atol=1e-6)
    if kind == "off":
        before, after = (float(value) for value in expressions[-2])
        assert before == pytest.approx(np.exp(answer["target"]["before"]), rel=1e-4)
        assert after == pytest.approx(np.exp(answer["target"]["after"]), rel=1e-4)
        row = ask(lab, "damage", second=SECOND, layer=0, marks=HIDDEN)["row"]
        np.testing.assert_allclose(expressions[-1][0].numpy(), row, atol=1e-5)
    if kind == "products":
        products = expressions[1].detach().numpy()[answer["keys"]]
        np.testing.assert_allclose(grid(answer), products, atol=1e-5)


@pytest.mark.parametrize("what", ["mean", "head", "rollout"])
def test_the_code_of_a_comparison_is_that_of_both(lab, what):
    answer = ask(lab, "compare", other="t-albert", what=what, marks=HIDDEN)
    first = answer["code"][: answer["code"].rindex("import core_models as cm")]
    if what == "rollout":
        first = answer["code"][: answer["code"].rindex("from core_models")]
    for n, code in enumerate((first, answer["code"])):  # run whole, the second model's is left
        names: dict[str, object] = {}
        exec(code, names)
        weights = names["weights"]
        found = weights if isinstance(weights, np.ndarray) else weights.detach().numpy()
        np.testing.assert_allclose(grid(answer, n), found, atol=1e-6)
