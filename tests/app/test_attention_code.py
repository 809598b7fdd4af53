"""The lines of Python under the Attention lab: they recompute what is shown."""

from dataclasses import replace

import numpy as np
import pytest

from app.labs.attention.code import one_head
from app.serving.ask import Ask, Mark
from tests.app.attention_lab import HIDDEN, SECOND, ask, cells, numbers
from tests.app.test_attention_lab import swept

MARKS = [*HIDDEN, {"position": 1, "case": "random", "piece": 9}, {"position": 2, "case": "kept"}]
QUESTIONS = {
    "combined": {"picks": "0.0 1.1"},
    "rollout": {},
    "norms": {"layer": 0, "head": 0},
    "off": {"off": "0.1", "marks": HIDDEN},
    "products": {"layer": 0, "head": 0},
}


def run(code):
    """The names that code leaves, and its lines that are values, as a console would show them."""
    names: dict[str, object] = {}
    values = []
    for line in code.splitlines():
        try:
            compile(line, "", "eval")
        except SyntaxError:
            exec(line, names)
        else:
            values.append(eval(line, names))
    return names, values


@pytest.mark.parametrize(("layer", "head"), [(1, 1), (2, -1), (-1, -1)])
def test_the_code_of_one_head(lab, layer, head):
    found = ask(lab, "heads", layer=layer, head=head, marks=MARKS)
    names, _ = run(found["code"])
    weights = names["weights"].detach().numpy()
    np.testing.assert_allclose(numbers(found), weights, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("mode", QUESTIONS)
def test_the_code_shown_recomputes_the_numbers(lab, mode):
    found = ask(lab, mode, second=SECOND, **QUESTIONS[mode])
    names, values = run(found["code"])
    if mode == "combined":
        np.testing.assert_allclose(numbers(found), names["weights"], atol=1e-5)
    if mode == "norms":
        np.testing.assert_allclose(cells(found["second_map"]), names["norms"], atol=1e-5)
    if mode == "rollout":
        np.testing.assert_allclose(cells(found["second_map"]), values[-2], atol=1e-6)
        flow = np.array(found["first"].data[2].y) / 100
        np.testing.assert_allclose(flow, values[-1], atol=1e-6)
    if mode == "off":
        shown = [row[1:] for row in found["first"].layout.meta["rows"]]
        assert [float(value) for value in values[-2]] in [
            pytest.approx(row, rel=1e-4) for row in shown
        ]
        damage = cells(swept(lab, second=SECOND, **QUESTIONS["off"])[-1]["second_map"])
        np.testing.assert_allclose(-values[-1].numpy(), damage, atol=1e-5)
    if mode == "products":
        products = values[1].detach().numpy()
        np.testing.assert_allclose(np.array(found["first"].data[0].z), products, atol=1e-5)


@pytest.mark.parametrize("what", ["mean", "head", "rollout"])
def test_the_code_of_a_comparison_is_that_of_both(lab, what):
    found = ask(lab, "compare", other="t-albert", what=what, marks=HIDDEN)
    code = found["code"]
    start = "from core_models" if what == "rollout" else "import core_models as cm"
    for part, figure in ((code[: code.rindex(start)], "first"), (code, "second_map")):
        names: dict[str, object] = {}
        exec(part, names)
        weights = names["weights"]
        expected = weights if isinstance(weights, np.ndarray) else weights.detach().numpy()
        np.testing.assert_allclose(cells(found[figure]), expected, atol=1e-6)


def test_the_code_names_every_mark():
    question = Ask(text="x", model="m", marks=(Mark(position=1), Mark(position=4)))
    code = one_head("m", question, 0, 0)
    assert "batch.input_ids[0, [1, 4]] = model.tokenizer.mask_id" in code
    assert "mask_id" not in one_head("m", replace(question, marks=()), 0, 0)
