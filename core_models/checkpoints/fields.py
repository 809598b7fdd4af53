"""Reading fields of a foreign config.json with a clear error for each that does not fit."""

from collections.abc import Mapping
from typing import Any

from core_models.errors import InputError

ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"} | {
    name: name for name in ("relu", "tanh")
}
"""Their activation names to ours."""


class Fields:
    """Typed access to a config.json; the key must be present unless a default is given."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number in low..high."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InputError(
                f"config.json: {key} is {value!r}; expected a whole number from {low} to {high}."
            )
        return value

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """A number in low..high."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"config.json: {key} is {value!r}; expected a number.")
        if not low <= value <= high:
            raise InputError(f"config.json: {key} is {value}; expected {low} to {high}.")
        return float(value)

    def boolean(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise InputError(f"config.json: {key} is {value!r}; expected true or false.")
        return value

    def activation(self, key: str) -> str:
        """One of our activation names."""
        value = self.values.get(key, "gelu")
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise InputError(
                f"config.json: {key} is {value!r}; supported are {', '.join(ACTIVATIONS)}."
            )
        return ACTIVATIONS[value]

    def fixed(self, key: str, expected: Any) -> None:
        """Refuse a field that is present with another value than the one supported."""
        value = self.values.get(key, expected)
        if value != expected:
            raise InputError(f"config.json: {key} is {value!r}; only {expected!r} is supported.")
