"""Controls for the settings of a run, made from the schema that checks them.

A labelled field (:mod:`core_models.training.run_schema`) becomes one of Gradio's controls: its
label, bounds and help are the field's own. So a new setting is one field, and pretraining,
fine-tuning and race have no list of settings of their own.
"""

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
from gradio.components import Component

from app.parts.controls import OpenCheckboxGroup, OpenDropdown, OpenNumber
from app.parts.plain import Line
from core_models import InputError
from core_models.training.run_schema import Part

MOST_LETTERS = 60
EXACT = 2**53 - 1
"""Whole numbers up to it are the same on the page; larger ones are rounded there without a word."""
EMPTY = ""
"""Of a dropdown: null, and of a text none."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """A labelled setting, as its schema says it."""

    path: str
    """Its place in the settings, such as ``optimizer.learning_rate``."""
    label: str
    help: str
    group: str
    """Label of the part that it belongs to; "" for the whole."""
    first: bool
    required: bool
    scale: float
    kind: str
    """``integer``, ``number``, ``boolean``, ``string`` or ``array``."""
    default: Any
    least: float | None
    most: float | None
    choices: tuple[tuple[str, Any], ...]


def fields(
    schema: type[Part], offered: Mapping[str, Sequence[tuple[str, Any]]] | None = None
) -> dict[str, Field]:
    """Every labelled setting by its path, in the order of the schema.

    Args:
        schema: Of the whole.
        offered: Choices of settings that are lists: what their members are called, and they.
    """
    values = schema.model_json_schema()
    found = {each.path: each for each in _fields(values, values.get("$defs", {}), "", "")}
    for path, choices in (offered or {}).items():
        found[path] = replace(found[path], choices=tuple(choices))
    return {path: each for path, each in found.items() if each.kind != "array" or each.choices}


def _fields(
    part: Mapping[str, Any], parts: Mapping[str, Any], path: str, group: str
) -> Iterator[Field]:
    for name, found in part.get("properties", {}).items():
        if "label" not in found:
            continue
        here = f"{path}.{name}" if path else name
        inner = parts.get(str(found.get("$ref", "")).rpartition("/")[2], {})
        if "properties" in inner:
            yield from _fields(inner, parts, here, found["label"])
        else:
            yield _field(
                {**found, "required": name in part.get("required", ())}, parts, here, group
            )


def _field(found: Mapping[str, Any], parts: Mapping[str, Any], path: str, group: str) -> Field:
    # A value that may be null stands beside null in a list of kinds.
    kinds = [kind for kind in found.get("anyOf", [found]) if kind.get("type") != "null"]
    kind = {**parts.get(str(kinds[0].get("$ref", "")).rpartition("/")[2], {}), **kinds[0]}
    values = kind.get("enum", ())
    if kind.get("type") == "boolean" and "anyOf" in found:
        values = (True, False)
    names = {True: "yes", False: "no", **found["names"]}
    choices = [(names.get(value, str(value)), value) for value in values]
    if "anyOf" in found:
        choices = [(found["none"], EMPTY), *choices]
    return Field(
        path=path,
        label=found["label"],
        help=" ".join(str(found.get("description", "")).split()),
        group=group,
        first=found["first"],
        required=found["required"],
        scale=found["scale"],
        kind=str(kind.get("type", "string")),
        default=found.get("default"),
        least=kind.get("minimum", kind.get("exclusiveMinimum")),
        most=_most(kind),
        choices=tuple(choices) if values else (),
    )


def _most(kind: Mapping[str, Any]) -> float | None:
    """The largest value that the page can hold as it is."""
    most: float | None = kind.get("maximum", kind.get("exclusiveMaximum"))
    return most if kind.get("type") != "integer" else min(EXACT if most is None else most, EXACT)


def draw(known: Mapping[str, Field], prefix: str) -> dict[str, Component]:
    """Lay the controls out, the first ones in a row and the others in a fold; by their paths.

    Args:
        known: The settings; those that are drawn elsewhere are left out.
        prefix: Of ids.
    """
    found = {}
    with gr.Row(elem_classes=["settings"]):
        for each in known.values():
            if each.first:
                found[each.path] = control(each, prefix)
    others = [each for each in known.values() if not each.first]
    with gr.Accordion("More settings", open=False, elem_classes=["told"]):
        for group in dict.fromkeys(each.group for each in others):
            Line(group or "Run", elem_classes=["group"])
            with gr.Row(elem_classes=["settings"]):
                for each in others:
                    if each.group == group:
                        found[each.path] = control(each, prefix)
    return found


def control(field: Field, prefix: str) -> Component:
    """The control of one setting."""
    common: dict[str, Any] = {
        "label": field.label,
        "info": field.help,
        "elem_id": f"{prefix}-{field.path.replace('.', '-').replace('_', '-')}",
        "min_width": 150 if field.first else 230,
    }
    value = shown(field, {})
    if field.kind == "array":
        common["elem_classes"] = ["wide"]
        return OpenCheckboxGroup([*field.choices], value=value, **common)
    if field.choices:
        return OpenDropdown([*field.choices], value=value, filterable=False, **common)
    if field.kind == "boolean":
        return gr.Checkbox(value, elem_classes=["tick"] if field.first else [], **common)
    if field.kind == "string":
        return gr.Textbox(value, max_lines=1, max_length=MOST_LETTERS, **common)
    return OpenNumber(
        value,
        placeholder=None if field.default is None else f"{field.default / field.scale:g}",
        minimum=None if field.least is None else field.least / field.scale,
        step=1 if field.kind == "integer" else 0.001,
        maximum=None if field.most is None else field.most / field.scale,
        **common,
    )


# --- settings and what controls show of them ------------------------------------------------------


def read(config: Any, path: str) -> Any:
    """The value at a path; None where there is none."""
    for name in path.split("."):
        config = config.get(name) if isinstance(config, Mapping) else None
    return config


def shown(field: Field, config: Mapping[str, Any]) -> Any:
    """What the control of a setting shows."""
    value = read(config, field.path)
    if field.kind == "array":
        listed = value if isinstance(value, list) else list(field.default or ())
        return [each for _, each in field.choices if each in listed]
    if field.choices or field.kind == "string":
        value = field.default if value is None else value
        return EMPTY if value is None else value
    if field.kind == "boolean":
        return bool(field.default if value is None else value)
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if not numeric:
        return None
    return value if field.scale == 1 else value / field.scale


def named(field: Field) -> str:
    """What messages call the value of a control, which may count in other units than the setting.

    Lines of the page put the label there.
    """
    return field.path if field.scale == 1 else f"{field.path}.shown"


def check(config: Mapping[str, Any], known: Mapping[str, Field], needed: Collection[str]) -> None:
    """Refuse what a control cannot hold as it is, and what must not be empty.

    Args:
        config: Settings.
        known: Those with a control.
        needed: Paths of those that have no default.

    Raises:
        InputError: it names the control, and says what is allowed.
    """
    for path, field in known.items():
        value = read(config, path)
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        least, most = field.least or 0, field.most or EXACT
        ends = f"from {_number(field, least)} to {_number(field, most)}"
        kind = "whole number" if field.kind == "integer" else "number"
        if value is None and path in needed:
            raise InputError(f"{named(field)} is empty; write a {kind} {ends} there.")
        rounded = numeric and field.kind == "integer" and abs(value) > EXACT
        # In the setting's own units nobody would recognize it in a message.
        outside = numeric and field.scale != 1 and not least <= value <= most
        if rounded or outside:
            given = _number(field, value)
            raise InputError(f"{named(field)} is {given}; choose a {kind} {ends}.")


def _number(field: Field, value: float) -> str:
    """A value as the control of a setting counts it."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value / field.scale:,.6f}".rstrip("0").rstrip(".")


def merged(
    config: Mapping[str, Any], known: Mapping[str, Field], values: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings with what the controls show put in; what they show anyhow is left out.

    Args:
        config: Settings, of which many have no control.
        known: Settings with a control.
        values: Of the controls, by path.
    """
    found: dict[str, Any] = copy.deepcopy(dict(config))
    for path, field in known.items():
        value = values[path]
        if value == shown(field, found):
            continue
        *above, last = path.split(".")
        part = found
        for name in above:
            inner = part.get(name)
            part[name] = dict(inner) if isinstance(inner, Mapping) else {}
            part = part[name]
        if value in (None, EMPTY):
            part.pop(last, None)
        elif field.kind == "array":
            part[last] = _members(part.get(last), field, value)
        elif field.scale != 1 and isinstance(value, int | float):
            part[last] = value * field.scale
        else:
            part[last] = value
    return found


def _members(before: Any, field: Field, chosen: Any) -> list[Any]:
    """A list with what was chosen; what is not offered stays in it."""
    old = before if isinstance(before, list) else []
    new = chosen if isinstance(chosen, list) else []
    offered = [value for _, value in field.choices]
    stays = [value for value in old if value in new or value not in offered]
    return [*stays, *(value for value in new if value not in stays)]


def values_of(question: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The values of the controls among those of a question."""
    return {path: question[path] for path in known}
