"""Tables of the Budget lab: what each size costs, and printed figures beside counted ones."""

from collections.abc import Mapping
from typing import Any

from app.labs.budget import answers, published
from app.labs.budget.known import label
from app.parts.plain import table
from viz.budget import short_number
from viz.svg import Wording


def costs(
    rows: list[dict[str, Any]],
    length: int,
    times: Mapping[str, Mapping[str, Any]],
    own: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Parameters, bytes, operations and times side by side."""
    return table(
        Wording("With pretraining heads; operations and time for a sequence of 1 token")
        if length == 1
        else Wording(
            "With pretraining heads; operations and time for a sequence of {0} tokens", length
        ),
        [
            Wording("Model"),
            Wording("Parameters"),
            "float32",
            "bfloat16",
            Wording("Operations per token"),
            Wording("Time of one pass"),
        ],
        [
            [
                label(row["name"]),
                [row["pretraining"], short_number(row["pretraining"])],
                [row["bytes_float32"], answers.mebibytes(row["bytes_float32"])],
                [row["bytes_bfloat16"], answers.mebibytes(row["bytes_bfloat16"])],
                [row["per_token"], short_number(row["per_token"])],
                time_cell(times.get(row["name"], {})),
            ]
            for row in rows
        ],
        messages=[5],
        times={name: dict(time) for name, time in times.items()},
        length=length,
        own=own,
    )


def time_cell(time: Mapping[str, Any]) -> Any:
    """A measured time, why there is none, or nothing."""
    if time.get("error"):
        return str(time["error"])
    fastest = time.get("fastest")
    if not isinstance(fastest, int | float):
        return None
    return [fastest, f"{fastest:,.0f} ms" if fastest >= 100 else f"{fastest:.3g} ms"]


def published_figures() -> dict[str, Any]:
    """Published figures beside exact ones."""
    return table(
        Wording("Figures in millions of parameters unless another unit is said"),
        [
            Wording("What is said"),
            Wording("Source"),
            Wording("Printed"),
            Wording("Counted"),
            Wording("Printed is"),
            Wording("Why"),
        ],
        [
            [
                claim["claim"],
                claim["source"],
                [claim["printed"], with_unit(f"{claim['printed']:,}", claim["sign"])],
                [
                    claim["exact"],
                    with_unit(f"{claim['exact']:,.{claim['digits']}f}", claim["sign"]),
                ],
                difference(claim["difference"]),
                claim["reason"],
            ]
            for claim in published.table()
        ],
        messages=[0, 1, 5],
    )


def with_unit(number: str, sign: str) -> str:
    """A figure with its unit; without one it is in millions of parameters."""
    return Wording("{0} {1}", number, sign) if sign else number


def difference(percent: float) -> str:
    """How far a printed figure lies from the exact one."""
    if abs(percent) < 0.05:
        return Wording("equal")
    shown = f"{abs(percent):.{1 if abs(percent) < 10 else 0}f}"
    return Wording("{0} % higher", shown) if percent > 0 else Wording("{0} % lower", shown)
