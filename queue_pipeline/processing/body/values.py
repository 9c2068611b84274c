"""Changes of dumped values for Arrow, such as text for values without a type in Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic_core import to_json, to_jsonable_python

Change = Callable[[Any], Any]
"""Turns a dumped value into one that Arrow takes; null stays null. Equal changes do the same."""


def enum_value(value: Any) -> Any:
    """The value of an enum's member."""
    return value.value if isinstance(value, Enum) else value


def text(value: Any) -> Any:
    """The text that JSON has for a value, such as a UUID; else its JSON text."""
    if value is None or type(value) is str:
        return value
    form = to_jsonable_python(value, fallback=str)
    return form if isinstance(form, str) else json_text(form)


def json_text(value: Any) -> Any:
    """The JSON text of any value."""
    return None if value is None else to_json(value, inf_nan_mode="null", fallback=str).decode()


@dataclass(frozen=True)
class Items:
    """Changes each item of a list."""

    change: Change

    def __call__(self, values: Any) -> Any:
        """The list with its items changed."""
        return None if values is None else [self.change(value) for value in values]


@dataclass(frozen=True)
class Entries:
    """Changes the keys and values of a dictionary."""

    key: Change | None
    value: Change | None

    def __call__(self, entries: Any) -> Any:
        """The dictionary with its entries changed."""
        if entries is None:
            return None
        key, value = self.key or _unchanged, self.value or _unchanged
        return {key(name): value(part) for name, part in entries.items()}


@dataclass(frozen=True)
class Fields:
    """Changes those fields of a row that need it."""

    changes: tuple[tuple[str, Change], ...]

    def __call__(self, row: Any) -> Any:
        """The row with these fields changed."""
        if row is None:
            return None
        return {**row, **{name: change(row[name]) for name, change in self.changes if name in row}}


def _unchanged(value: Any) -> Any:
    return value
