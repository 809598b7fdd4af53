"""Rotary positions in the Terms lab: one query and one key, set at every distance."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gradio as gr

import core_models as cm
from app.labs.terms import answers as terms
from app.parts.controls import OpenDropdown
from app.parts.figure import Figure
from app.parts.plain import Line, Table, sentences, table
from core_models.prediction.rotation_view import REACH, RotationView, look_at_rotation
from viz.svg import Wording
from viz.turns import score_by_distance, score_by_piece


class Turned(NamedTuple):
    """What is shown of a model with rotary positions, and nothing of others."""

    by_distance: Figure
    said: Line
    by_piece: Figure
    waves: Table


def build(kept: dict[str, Any]) -> tuple[Figure, Line, Figure]:
    """Who looks at whom, and the two charts."""
    with gr.Row(elem_classes=["choices"]):
        for name, label in (("query", "Looking piece"), ("key", "Piece that is moved")):
            kept[name] = OpenDropdown(
                [("", -1)], value=-1, label=label, visible="hidden", min_width=150
            )
    chart, said = Figure(elem_id="terms-turned"), Line()
    return chart, said, Figure(elem_id="terms-turned-row")


def examine(
    model: cm.Model, setting: terms.Setting, found: Mapping[str, Any]
) -> RotationView | None:
    """What the head does with distances, if positions are rotary; runs on the model thread.

    Query and key are among the pieces of the maps. Where none is chosen, a hidden piece looks, or
    the one in the middle, at its neighbour before it.
    """
    if not found["turned"]:
        return None
    columns = found["columns"]
    query = next(
        (each for each in (setting.query, found["gap"]) if each in columns),
        columns[len(columns) // 2],
    )
    near = query - 1 if query - 1 in columns else min(query + 1, columns[-1])
    key = setting.key if setting.key in columns else near
    asked = terms.fit(model, setting)
    return look_at_rotation(
        model,
        asked.seen,
        step=asked.layer,
        head=asked.head,
        query=query,
        key=key,
        reach=max(REACH, setting.reach, abs(query - key)),
    )


def shown(found: Mapping[str, Any], question: Mapping[str, Any]) -> list[Any]:
    """The two choices, and the four parts of :class:`Turned`."""
    view: RotationView | None = found["rotation"]
    if view is None:
        return [*(gr.Dropdown(visible="hidden") for _ in range(2)), None, None, None, None]
    chosen = {"query": view.query, "key": view.key}
    return [
        *(_choices(found, question[name], place) for name, place in chosen.items()),
        _by_distance(found, view),
        said(found, view),
        _by_piece(found, view),
        _waves(view),
    ]


def _choices(found: Mapping[str, Any], wanted: Any, place: int) -> Any:
    # The piece that is taken where none is chosen stands for that.
    own = place if wanted == place else -1
    options = [
        (f"{n} {found['tokens'][n]['text']}", own if n == place else n) for n in found["columns"]
    ]
    value = {} if wanted == own else {"value": own}
    return gr.Dropdown(choices=options, visible=True, **value)


def _place(found: Mapping[str, Any]) -> Wording:
    return Wording("layer {0}, head {1}", found["layer"] + 1, found["head"] + 1)


def _text(found: Mapping[str, Any], place: int) -> str:
    return str(found["tokens"][place]["text"]).strip()


def _by_distance(found: Mapping[str, Any], view: RotationView) -> Any:
    texts = (_text(found, place) for place in (view.query, view.key))
    return score_by_distance(
        view.curve,
        reach=view.distances[-1],
        distance=view.distance,
        window=view.window,
        title=Wording("“{0}” looks at “{1}” ({2})", *texts, _place(found)),
    )


def _by_piece(found: Mapping[str, Any], view: RotationView) -> Any:
    columns: Sequence[int] = found["columns"]
    part = slice(columns[0], columns[-1] + 1)
    return score_by_piece(
        [_text(found, place) for place in columns],
        view.unturned[part],
        view.turned[part],
        view.visible[part],
        first=columns[0],
        key=view.key,
        title=Wording("“{0}” looks at every piece", _text(found, view.query)),
    )


def said(found: Mapping[str, Any], view: RotationView) -> str:
    """What the charts show, and what the layer sees."""
    values = (view.turned[view.key], view.unturned[view.key])
    here, bare = (f"{value:.2f}".replace("-", "\N{MINUS SIGN}") for value in values)
    sees = Wording("Layer {0} is global: it sees every distance.", found["layer"] + 1)
    if view.window is not None:
        text = "Layer {0} is local: it sees {1} pieces on each side (shaded)."
        sees = Wording(text, found["layer"] + 1, view.window)
    fast, slow = (_length(view.wavelengths[n]) for n in (0, -1))
    return sentences(
        Wording(
            "The query of “{0}” and the key of “{1}” stay as they are, only their distance "
            "changes: {2} where they stand, {3} at distance 0, where nothing is turned.",
            _text(found, view.query),
            _text(found, view.key),
            here,
            bare,
        ),
        sees,
        Wording(
            "Its {0} pairs of values turn once in {1} to {2} pieces.",
            len(view.wavelengths),
            fast,
            slow,
        ),
    )


def _length(wave: float) -> str:
    return f"{wave:.1f}" if wave < 100 else f"{wave:,.0f}"


def _waves(view: RotationView) -> dict[str, Any]:
    return table(
        Wording(
            "Pieces for one full turn of each pair of values (theta {0})", f"{view.theta:,.0f}"
        ),
        [Wording("Pair of values"), Wording("Pieces for one turn")],
        [[n, [wave, _length(wave)]] for n, wave in enumerate(view.wavelengths)],
    )


def code_lines(view: RotationView, layer: int, head: int) -> list[str]:
    """Python that recomputes the charts, after the lines of the maps."""
    return [
        "",
        "from core_models.prediction.rotation_view import look_at_rotation",
        "",
        f"turned = look_at_rotation(model, seen, step={layer}, head={head}, query={view.query}, "
        f"key={view.key}, reach={view.distances[-1]})",
        "print(dict(zip(turned.distances, turned.curve)))",
        "print(turned.unturned, turned.turned, turned.wavelengths)",
    ]
