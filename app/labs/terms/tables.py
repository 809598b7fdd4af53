"""Tables of distances of published sizes, which families have terms, and code for the Terms tab."""

from collections.abc import Mapping
from typing import Any

import torch

import core_models as cm
from app.labs.terms import turned
from core_models import InputError
from core_models.config import Disentangled, Plain
from core_models.families import FAMILIES
from core_models.network.terms.buckets import exact_reach, rows_of

TABLE_REACH = 1024
"""Distances of a table that are drawn, each way."""


def published() -> list[str]:
    """Published sizes with a learned table of distances."""
    return [
        name
        for family in FAMILIES.values()
        for name, config in family.sizes.items()
        if isinstance(config.attention.terms, Disentangled)
    ]


def has_table(family: str) -> bool:
    """Whether models of a family have a learned table of distances."""
    sizes = FAMILIES[family].sizes if family in FAMILIES else {}
    return any(isinstance(config.attention.terms, Disentangled) for config in sizes.values())


def has_terms(family: str) -> bool:
    """Whether models of a family have terms beside the content score."""
    sizes = FAMILIES[family].sizes.values() if family in FAMILIES else ()
    return any(not isinstance(config.attention.terms, Plain) for config in sizes)


def table(config: cm.Config) -> dict[str, Any]:
    """The rows of a table by distance, and the formula of its family."""
    terms = config.attention.terms
    if not isinstance(terms, Disentangled):
        raise InputError("This model has no table of distances; choose a DeBERTa.")
    rows = rows_of(terms, torch.arange(-TABLE_REACH, TABLE_REACH + 1)).tolist()
    if terms.buckets:
        half = terms.buckets // 2
        formula = (
            f"|r| <= {half}:  row = r + {terms.buckets}\n"
            f"|r| >  {half}:  row = sign(r) * (ceil(ln(|r| / {half}) / "
            f"ln({terms.span - 1} / {half}) * {half - 1}) + {half}) + {terms.buckets},  "
            f"clipped to 0..{2 * terms.buckets - 1}"
        )
    else:
        formula = f"row = r + {terms.span},  clipped to 0..{2 * terms.span - 1}"
    low, high = exact_reach(terms)
    return {
        "rows": rows,
        "reach": TABLE_REACH,
        "count": 2 * (terms.buckets or terms.span),
        "exact": [low, high],
        "span": terms.span,
        "buckets": terms.buckets,
        "formula": formula,
    }


def code_lines(name: str, text: str, answer: Mapping[str, Any]) -> str:
    """Python that recomputes the maps, the switched prediction and the means by distance."""
    lines = [
        "import core_models as cm",
        "from core_models.prediction import terms_view",
        "from core_models.prediction.passes import seen_with",
        "",
        f"model = cm.load({name!r})",
        f"(encoding,) = model.encode([{text!r}])",
        f"gaps = {answer['gaps']}",
        "seen = seen_with(encoding, dict.fromkeys(gaps, model.tokenizer.mask_id))",
    ]
    step = answer["layer"]
    if answer["stream"] == "mask_decoder":
        lines.append("step = model.config.steps - 1  # the decoder runs the last layer again")
        step = "step"
    lines += [
        "edits = terms_view.switched_off(",
        f"    model.config, {answer['off']}, {answer['scope']!r}, step={step}, "
        f"head={answer['head']}",
        ")",
        "found = terms_view.look(",
        f"    model, seen, gaps, step={answer['layer']}, head={answer['head']}, "
        f"stream={answer['stream']!r}, edits=edits",
        ")",
        "print(found.view.names, found.view.terms.shape, found.view.residue())",
        "print(terms_view.by_distance(found.view))",
    ]
    if answer["gap"] is not None:
        at = answer["gaps"].index(answer["gap"])
        lines += [
            f"logs = terms_view.distribution(model, found.answers)[{at}]",
            "for value, index in zip(*logs.exp().topk(5)):",
            "    print(model.tokenizer.display(int(index)), float(value))",
        ]
    if view := answer["rotation"]:
        lines += turned.code_lines(view, step, answer["head"])
    return "\n".join(lines)
