"""The constraints of a pydantic field: read from its metadata, applied as checks, or refused."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from annotated_types import GroupedMetadata
from pydantic.fields import FieldInfo
from pyspark.sql.types import BooleanType, DataType, DateType, DecimalType, DoubleType, LongType, TimestampType

from queue_pipeline.processing.body.checks import bound, finite, item_count, multiple_of, pattern, text_length
from queue_pipeline.processing.body.shape import MAX_DIGITS, Check
from queue_pipeline.transport.errors import ConfigurationError

_DEFAULT_DECIMAL = DecimalType(MAX_DIGITS, 18)
_BOUNDS = ("gt", "ge", "lt", "le")
_LENGTHS = ("min_length", "max_length")
_KNOWN = (*_BOUNDS, *_LENGTHS, "multiple_of", "pattern", "max_digits", "decimal_places", "allow_inf_nan")


@dataclass(frozen=True)
class Constraints:
    """Constraints by their pydantic name; each kind of type takes those it knows and refuses the rest."""

    place: str
    values: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, metadata: Iterable[Any], place: str) -> Constraints:
        """Take what `Field`, `Annotated` and pydantic's constrained types leave behind."""
        values: dict[str, Any] = {}
        for item in _flat(metadata):
            found = {name: value for name, value in _attributes(item).items() if value is not None}
            unknown = [name for name in found if name not in _KNOWN] if found else [type(item).__name__]
            if unknown:
                raise ConfigurationError(f"{place} has {unknown[0]}, which Spark cannot apply; use {', '.join(_KNOWN)}")
            twice = [name for name in found if name in values]
            if twice:
                raise ConfigurationError(f"{place} has {twice[0]} twice; keep one")
            values |= found
        return cls(place, values)

    def refuse_any(self, kind: str) -> None:
        """For types that take no constraint."""
        self._only((), kind)

    def of_text(self) -> tuple[Check, ...]:
        """Length and pattern."""
        self._only((*_LENGTHS, "pattern"), "text")
        checks = text_length(self.values.get("min_length"), self.values.get("max_length"))
        regex = self.values.get("pattern")
        if regex is not None:
            checks.append(pattern(regex.pattern if isinstance(regex, re.Pattern) else regex))
        return tuple(checks)

    def of_items(self) -> tuple[Check, ...]:
        """Length of an array or a map."""
        self._only(_LENGTHS, "a list or a dict")
        return tuple(item_count(self.values.get("min_length"), self.values.get("max_length")))

    def of_number(self, type_: DataType) -> tuple[Check, ...]:
        """Bounds of whatever has an order."""
        match type_:
            case LongType():
                self._only((*_BOUNDS, "multiple_of"), "int")
            case DoubleType():
                self._only((*_BOUNDS, "allow_inf_nan"), "float")
            case DecimalType():
                self._only((*_BOUNDS, "multiple_of", "max_digits", "decimal_places"), "Decimal")
            case DateType():
                self._only(_BOUNDS, "date")
            case BooleanType():
                self._only((), "bool")
            case TimestampType():
                self._only((), "datetime")
        floating = isinstance(type_, DoubleType)
        checks = [bound(name, self._limit(name, type_), floating=floating) for name in _BOUNDS if name in self.values]
        if "multiple_of" in self.values:
            checks.append(multiple_of(self._limit("multiple_of", type_)))
        if self.values.get("allow_inf_nan") is False:
            checks.append(finite())
        return tuple(checks)

    def decimal_type(self) -> DecimalType:
        """The decimal that holds every value which the constraints allow."""
        digits, places = self.values.get("max_digits"), self.values.get("decimal_places")
        if digits is None and places is None:
            return _DEFAULT_DECIMAL
        if places is None:
            raise ConfigurationError(f"{self.place} has max_digits alone; give decimal_places too")
        digits = MAX_DIGITS if digits is None else digits
        if not 0 <= places <= digits <= MAX_DIGITS:
            raise ConfigurationError(
                f"{self.place} has {digits} digits, {places} of them decimals; Spark has up to {MAX_DIGITS}"
            )
        return DecimalType(digits, places)

    def _limit(self, name: str, type_: DataType) -> Any:
        limit = self.values[name]
        fits = isinstance(limit, dt.date) if isinstance(type_, DateType) else isinstance(limit, int | float | Decimal)
        if isinstance(limit, int) and not -(2**63) <= limit < 2**63:
            fits = False
        if not fits:
            raise ConfigurationError(
                f"{self.place} has {name}={limit!r}, which is not of its type; use a {type_.typeName()}"
            )
        return limit

    def _only(self, allowed: tuple[str, ...], kind: str) -> None:
        for name in self.values:
            if name not in allowed:
                raise ConfigurationError(
                    f"{self.place} has {name}, which Spark cannot apply to {kind}; "
                    + (f"use {', '.join(allowed)}" if allowed else "remove it, or check the payload in the pipeline")
                )


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    for item in metadata:
        if isinstance(item, FieldInfo):  # of an element: Annotated[int, Field(gt=0)]
            yield from _flat(item.metadata)
        elif isinstance(item, GroupedMetadata):
            yield from _flat(item)
        else:
            yield item


def _attributes(item: Any) -> dict[str, Any]:
    if hasattr(item, "__dict__") and item.__dict__:
        return dict(item.__dict__)
    return {name: getattr(item, name) for name in getattr(item, "__slots__", ())}
