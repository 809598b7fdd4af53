"""A figure of plain values that becomes Plotly's own only where somebody needs that.

Plotly checks every value that is set, and every update walks over the whole figure. A page that
draws for each click needs neither: what it shows is checked by the tests, and plotly.js takes the
values as they are.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.basedatatypes import convert_to_base64

Values = dict[str, Any]
_NAMES = {"paper_bgcolor", "plot_bgcolor"}
"""Of a layout, with an underscore that is no short way to a value within."""
_HIGH = {"xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
_WIDE = {"yref": "y", "x0": 0, "x1": 1, "xref": "x domain"}
_AS_IT_IS = {"meta"}
"""What may hold None, which elsewhere means that nothing is set."""
_OF_PLOTLY = {
    *("row", "col", "secondary_y", "exclude_empty_subplots", "selector", "overwrite", "patch")
}
"""Arguments that are no values: which part of a figure is meant, and how."""
_GRID = ("_grid_str", "_grid_ref")
"""What ``make_subplots`` hangs onto a figure, which need not be made yet."""


class Draft(go.Figure):  # type: ignore[misc]
    """A ``plotly.graph_objects.Figure`` whose usual calls are only written down.

    ``add_scatter``, ``add_bar``, ``add_heatmap``, shapes, lines and bands across the plot, and
    updates of layout and axes are kept as they come; whatever else is asked of it (``data``,
    ``layout``, ``show``) first makes the figure, and everything is checked then.
    """

    def __init__(self, traces: Sequence[Any] = (), layout: Mapping[str, Any] | None = None) -> None:
        data = [
            dict(each) if isinstance(each, Mapping) else each.to_plotly_json() for each in traces
        ]
        self._draft: Values | None = {"data": data, "layout": dict(layout or {})}

    def __getattr__(self, name: str) -> Any:
        """Called for what only a made figure has."""
        # Who copies asks for names such as __deepcopy__, which no made figure has either.
        if self.__dict__.get("_draft") is None or name.startswith("__"):
            raise AttributeError(f"a figure has no {name}")
        self.make()
        return getattr(self, name)

    def make(self) -> None:
        """Hand everything to Plotly, which checks it; ValueError says what is wrong."""
        if self._draft is not None:
            draft, self._draft = self._draft, None
            super().__init__({**draft, **self._grid()})

    def __reduce__(self) -> tuple[Any, ...]:
        """What a copy or a pickle is made of: Plotly's own would call the class with values."""
        draft = self._draft
        whole = go.Figure.to_dict(self) if draft is None else copy.deepcopy(draft)
        return _again, (type(self), {**whole, **self._grid()}, draft is None)

    def _grid(self) -> Values:
        return {name: self.__dict__.get(name) for name in _GRID}

    @property
    def draft(self) -> Values | None:
        """``data`` and ``layout`` as plain values; None when the figure is made."""
        return self._draft

    def drawn(self) -> Values:
        """``data`` and ``layout`` for plotly.js, without the look: a copy."""
        if self._draft is None:
            whole: Values = super().to_dict()
            return whole
        found: Values = _copied(self._draft)
        convert_to_base64(found)
        return found

    def to_dict(self) -> Values:
        """The figure as plain values, checked."""
        self.make()
        whole: Values = super().to_dict()
        return whole

    def _add(self, kind: str, values: Mapping[str, Any]) -> bool:
        if self._draft is None or _OF_PLOTLY & values.keys():
            self.make()
            return False
        self._draft["data"].append({"type": kind, **values})
        return True

    def add_scatter(self, **values: Any) -> Draft:
        """See Plotly."""
        return self if self._add("scatter", values) else super().add_scatter(**values)

    def add_bar(self, **values: Any) -> Draft:
        """See Plotly."""
        return self if self._add("bar", values) else super().add_bar(**values)

    def add_heatmap(self, **values: Any) -> Draft:
        """See Plotly."""
        return self if self._add("heatmap", values) else super().add_heatmap(**values)

    def add_shape(self, *given: Any, **values: Any) -> Draft:
        """See Plotly."""
        if self._draft is None or given or self._asks_plotly(values):
            self.make()
            super().add_shape(*given, **values)
        else:
            layout = self._draft["layout"]
            layout["shapes"] = [*layout.get("shapes", ()), values]
        return self

    def add_vline(self, x: float, **values: Any) -> Draft:
        """A line over the whole height at ``x``."""
        if self._asks_plotly(values):
            return super().add_vline(x, **values)  # type: ignore[no-any-return]
        return self.add_shape(type="line", x0=x, x1=x, **_HIGH, **values)

    def add_hline(self, y: float, **values: Any) -> Draft:
        """A line over the whole width at ``y``."""
        if self._asks_plotly(values):
            return super().add_hline(y, **values)  # type: ignore[no-any-return]
        return self.add_shape(type="line", y0=y, y1=y, **_WIDE, **values)

    def add_vrect(self, x0: float, x1: float, **values: Any) -> Draft:
        """A band over the whole height."""
        if self._asks_plotly(values):
            return super().add_vrect(x0, x1, **values)  # type: ignore[no-any-return]
        return self.add_shape(type="rect", x0=x0, x1=x1, **_HIGH, **values)

    def _asks_plotly(self, values: Mapping[str, Any]) -> bool:
        """Whether a shape is asked for with more than its values; then the figure is made."""
        more = any(name in _OF_PLOTLY or name.startswith("annotation") for name in values)
        if more:
            self.make()
        return more

    def update_layout(self, values: Any = None, **more: Any) -> Draft:
        """See Plotly; a value is named by nested dicts, or else the figure is made."""
        if "overwrite" in more:
            self.make()
            super().update_layout(values, **more)
            return self
        given = values.to_plotly_json() if isinstance(values, go.Layout) else values or {}
        whole = {**given, **more}
        if self._draft is None or any("_" in name for name in whole.keys() - _NAMES):
            self.make()
            super().update_layout(whole)
            return self
        _update(self._draft["layout"], whole)
        return self

    def update_xaxes(self, *given: Any, **values: Any) -> Draft:
        """See Plotly."""
        drafted = self._axes("x", given, values)
        return self if drafted else super().update_xaxes(*given, **values)

    def update_yaxes(self, *given: Any, **values: Any) -> Draft:
        """See Plotly."""
        drafted = self._axes("y", given, values)
        return self if drafted else super().update_yaxes(*given, **values)

    def _axes(self, letter: str, given: Sequence[Any], values: Mapping[str, Any]) -> bool:
        if self._draft is None or given or any("_" in n or n in _OF_PLOTLY for n in values):
            self.make()
            return False
        layout = self._draft["layout"]
        for name in {f"{letter}axis", *(key for key in layout if _is_axis(key, letter))}:
            _update(layout, {name: values})
        return True


def _again(kind: type[Draft], values: Values, made: bool) -> Draft:
    """A copy of a draft, or of a made figure, whatever its class takes."""
    figure = kind.__new__(kind)
    figure.__dict__.update({name: values.pop(name) for name in _GRID})
    figure._draft = values
    if made:
        figure.make()
    return figure


def axes(layout: Mapping[str, Any], letter: str) -> list[str]:
    """Names of the axes of a layout in a direction, the first one always."""
    return list(dict.fromkeys([f"{letter}axis", *(key for key in layout if _is_axis(key, letter))]))


def _is_axis(name: str, letter: str) -> bool:
    return re.fullmatch(rf"{letter}axis\d*", name) is not None


def _update(old: Values, new: Mapping[str, Any]) -> None:
    """Values of dicts one by one, lists of dicts one by one; all else is replaced."""
    for name, value in new.items():
        there = old.get(name)
        if isinstance(value, Mapping) and name not in _AS_IT_IS:
            old[name] = dict(there) if isinstance(there, Mapping) else {}
            _update(old[name], value)
        elif there and isinstance(value, list | tuple) and isinstance(value[0], Mapping):
            pairs = zip(there, value, strict=False)
            old[name] = [dict(each) for each in (*there, *value[len(there) :])]
            for mine, (_, each) in zip(old[name], pairs, strict=False):
                _update(mine, each)
        else:
            old[name] = value


def _copied(value: Any) -> Any:
    """Dicts without what is None, and lists, new; the values in them the same."""
    if isinstance(value, Mapping):
        return {
            key: each if key in _AS_IT_IS else _copied(each)
            for key, each in value.items()
            if each is not None
        }
    if isinstance(value, list | tuple):
        return [_copied(each) if isinstance(each, Mapping) else each for each in value]
    return value
