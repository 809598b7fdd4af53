"""Config trees as plain values and back, with the path of whatever does not fit."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from core_models.errors import InputError


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of :func:`to_json`'s tree with its dotted path."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, f"{path}.{key}" if path else key)
    else:
        yield path, value


def to_json(value: Any) -> Any:
    """Plain values of a config or a part of it; one of several kinds of part carries its tag."""
    if is_dataclass(value) and not isinstance(value, type):
        tag = {"kind": value.kind} if hasattr(value, "kind") else {}
        return tag | {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    return value


def from_json(kind: Any, value: Any, path: str) -> Any:
    """Build ``kind`` from plain values, naming the path of whatever does not fit."""
    options = [option for option in (get_args(kind) or (kind,)) if option is not type(None)]
    if is_dataclass(options[0]):
        if value is None and type(None) in get_args(kind):
            return None
        if not isinstance(value, Mapping):
            raise InputError(f"{path} must be an object with named fields, not {value!r}.")
        values = dict(value)
        if len(options) > 1:
            options = [_tagged(options, values.pop("kind", None), path)]
        return _build(options[0], values, path)
    if getattr(kind, "__origin__", None) is tuple:
        if not isinstance(value, list | tuple):
            raise InputError(f"{path} must be a list, not {value!r}.")
        items = get_args(kind)
        if items[-1] is not Ellipsis and len(value) != len(items):
            raise InputError(f"{path} must have {len(items)} items, not {len(value)}.")
        return tuple(from_json(items[0], item, path) for item in value)
    allowed = get_args(kind) or (kind,)
    if float in allowed and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise InputError(f"{path} is larger than any number of type float.") from None
    if type(value) not in allowed:
        names = " or ".join("null" if t is type(None) else t.__name__ for t in allowed)
        raise InputError(f"{path} must be {names}, not {value!r}.")
    return value


def _tagged(options: list[Any], tag: Any, path: str) -> Any:
    for option in options:
        if option.kind == tag:
            return option
    known = ", ".join(option.kind for option in options)
    raise InputError(f"{path}.kind is {tag!r}; allowed are {known}.")


def _build(kind: Any, values: dict[str, Any], path: str) -> Any:
    hints = get_type_hints(kind)
    known = {f.name: f for f in fields(kind)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InputError(f"{path} has no field {unknown[0]!r}; known are {', '.join(known)}.")
    missing = [
        name
        for name, f in known.items()
        if name not in values
        and f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise InputError(f"{path} lacks the field {missing[0]!r}.")
    return kind(
        **{name: from_json(hints[name], value, f"{path}.{name}") for name, value in values.items()}
    )
