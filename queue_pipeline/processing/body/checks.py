"""What a value of a body must be beyond its type: bounds, lengths, patterns, allowed values."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from decimal import Decimal

from queue_pipeline.processing.body.shape import Check
from queue_pipeline.processing.body.sql import number, plain, quoted, text

_HYPHENATED = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID = f"(?i)^(?:urn:uuid:)?(?:{_HYPHENATED}|[0-9a-f]{{32}})$|^\\{{{_HYPHENATED}\\}}$"

_FIRST_MICROSECOND = -62_135_596_800_000_000
_LAST_MICROSECOND = 253_402_300_799_999_999

_COMPARISONS = {
    "gt": (">", "greater than"),
    "ge": (">=", "greater than or equal to"),
    "lt": ("<", "less than"),
    "le": ("<=", "less than or equal to"),
}


def bound(comparison: str, limit: int | float | Decimal | dt.date, *, floating: bool) -> Check:
    """A limit by its pydantic name: gt, ge, lt, le."""
    operator, words = _COMPARISONS[comparison]
    # Spark orders NaN above every number; for a person it is above nothing.
    nan = " OR isnan({})" if floating else ""
    return Check(
        lambda value: f"NOT ({value} {operator} {number(limit)})" + nan.format(value), plain, f"{words} {limit}"
    )


def multiple_of(step: int | Decimal) -> Check:
    """A number that `step` divides."""
    return Check(lambda value: f"pmod({value}, {number(step)}) <> 0", plain, f"a multiple of {step}")


def text_length(at_least: int | None, at_most: int | None) -> list[Check]:
    """Characters, not bytes."""
    return _size("char_length", quoted, "characters long", at_least, at_most)


def item_count(at_least: int | None, at_most: int | None) -> list[Check]:
    """Elements of an array, or entries of a map."""
    return _size("size", lambda value: f"concat(size({value}), ' items long')", "items long", at_least, at_most)


def pattern(regex: str, words: str | None = None) -> Check:
    """Text in which the pattern is found; it is written for pydantic and searched by Java."""
    java = text(java_pattern(regex))
    return Check(lambda value: f"NOT rlike({value}, {java})", quoted, words or f"text that matches {regex}")


def uuid() -> Check:
    """A UUID in any notation of .NET or Python."""
    return pattern(_UUID, "a UUID")


def one_of(allowed: Sequence[str]) -> Check:
    """One of the given texts."""
    words = allowed[0] if len(allowed) == 1 else f"one of {', '.join(allowed)}"
    return Check(lambda value: f"{value} NOT IN ({', '.join(map(text, allowed))})", quoted, words)


def decimal_places(places: int) -> Check:
    """No digit would be lost by rounding."""
    words = "a whole number" if places == 0 else f"a number of at most {places} decimal places"
    return Check(lambda value: f"{value} <> round({value}, {places})", plain, words)


def finite() -> Check:
    """Neither NaN nor infinite."""
    return Check(lambda value: f"isnan({value}) OR abs({value}) = DOUBLE('Infinity')", plain, "a finite number")


def instant_in_calendar() -> Check:
    """A moment that Python and .NET can hold: a number of milliseconds lies in the year 50000 and is refused here."""
    return Check(
        lambda value: f"unix_micros({value}) NOT BETWEEN {_FIRST_MICROSECOND} AND {_LAST_MICROSECOND}",
        plain,
        "in the years 1 to 9999 (a number counts seconds since 1970)",
    )


def date_in_calendar() -> Check:
    """The same for what has no time zone."""
    return Check(lambda value: f"year({value}) NOT BETWEEN 1 AND 9999", plain, "in the years 1 to 9999")


def distinct_keys() -> Check:
    """Spark keeps both entries of a key that is there twice, and finds one of them."""
    return Check(
        lambda value: f"size(array_distinct(map_keys({value}))) <> size({value})",
        lambda value: "'an object that names a key twice'",
        "one whose keys are distinct",
    )


def java_pattern(regex: str) -> str:
    """The same pattern for Java: classes know Unicode, `.` stops at a line feed only, `$` is the very end."""
    parts, in_class = [], False
    for token in re.findall(r"\\.|\(\?P<|.", regex, re.DOTALL):
        in_class = (in_class or token == "[") and token != "]"
        parts.append(token if in_class else {"$": r"\z", "(?P<": "(?<"}.get(token, token))
    return "(?Ud)" + "".join(parts)


def _size(
    measure: str, shown: Callable[[str], str], unit: str, at_least: int | None, at_most: int | None
) -> list[Check]:
    checks = []
    if at_least is not None:
        checks.append(Check(lambda value: f"{measure}({value}) < {at_least}", shown, f"at least {at_least} {unit}"))
    if at_most is not None:
        checks.append(Check(lambda value: f"{measure}({value}) > {at_most}", shown, f"at most {at_most} {unit}"))
    return checks
