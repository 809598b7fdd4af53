"""The parity table: measured in a reduced form, and what the document says of the rest."""

import math
import re

import pytest
import torch

from benchmarks import families, parity, parity_cases, parity_xlnet
from benchmarks.parity_cases import CASES, Figure
from core_models.checkpoints.formats import BY_FAMILY
from core_models.families import FAMILIES

REDUCED = ("macbert", "electra", "deberta_v3")


def test_a_reduced_table_is_within_its_tolerance():
    cases = [case for case in CASES if case.family in REDUCED]
    figures, tables = parity.measure(cases)
    assert [f for f in figures if not f.passes] == []
    assert [t.title for t in tables] == ["MacBERT", "ELECTRA", "DeBERTa v3"]
    assert {f.column for f in figures} == {
        *parity_cases.PADDINGS,
        parity_cases.LONGEST,
        parity_cases.ROWS,
        parity_cases.GRADIENTS,
    }
    both = [f for f in figures if f.column in parity_cases.PADDINGS]
    assert all(f.traced is not None for f in both)
    assert any(f.fast != f.traced for f in both)  # two paths were really run


def test_memory_is_within_its_tolerance():
    figures = [*parity_xlnet.segments()]
    assert [f for f in figures if not f.passes] == []
    assert len(figures) == 6


def test_another_weight_is_noticed(monkeypatch):
    written = parity.written

    def changed(model, folder):
        result = written(model, folder)
        with torch.no_grad():
            result.encoder.blocks[0].attention.value.weight[0, 0] += 0.1
        return result

    monkeypatch.setattr(parity, "written", changed)
    case = next(case for case in CASES if case.family == "roberta")
    assert [f for f in parity.compare(case) if f.passes] == []


@pytest.mark.parametrize(
    ("column", "fast", "traced", "passes"),
    [
        ("odd", 1e-5, 1e-5, True),
        ("odd", 1e-6, 2e-5, False),
        ("odd", math.inf, None, False),
        (parity_cases.GRADIENTS, 9e-5, None, True),
    ],
)
def test_what_passes(column, fast, traced, passes):
    assert Figure("bert", "", "masked_token", column, fast, traced).passes is passes
    assert parity_cases.apart(torch.tensor([math.nan, 0.0]), torch.zeros(2)) == math.inf


def test_every_row_of_every_case_stands_in_the_document():
    text = parity.DOCUMENT.read_text("utf-8")
    generated = text[text.index(families.BEGIN) : text.index(families.END)]
    for case in CASES:
        assert f"**{FAMILIES[case.family].title}**" in generated
        for head in case.heads:
            assert f"| {case.variation}: {head.replace('_', ' ')} |" in generated, case.name
    for title, *_ in parity_xlnet.TABLES:
        assert f"**{title}**" in generated
    cells = [float(x) for x in re.findall(r"\d+e[-+]\d+", re.sub(r"(?m)^L.*$", "", generated))]
    assert len(cells) > 300
    assert max(cells) <= parity_cases.TOLERANCE  # in the document even gradients are


def test_every_family_has_a_case_and_no_two_share_a_row():
    known = {name for name in FAMILIES if BY_FAMILY[name].in_transformers}
    assert {case.family for case in CASES} == known
    rows = [(case.family, case.variation, head) for case in CASES for head in case.heads]
    assert len(rows) == len(set(rows))
