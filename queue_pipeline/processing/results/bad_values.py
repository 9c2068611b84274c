"""Values of a result that cannot be sent: each fails its own message, with a reason that names the field.

Checks run on whole columns; only the failures are handled row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.arrow import Array
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.transport.messages.message import LONGEST_DELAY, LONGEST_TIME_TO_LIVE

MILLISECOND = timedelta(milliseconds=1)
SPANS: Mapping[str, tuple[int, int, str]] = {
    "delay": (
        -(LONGEST_DELAY // MILLISECOND),
        LONGEST_DELAY // MILLISECOND,
        "at most a hundred years; one that is not above zero means at once",
    ),
    "time_to_live": (
        1,
        LONGEST_TIME_TO_LIVE // MILLISECOND,
        f"at least 0.001 s and at most {LONGEST_TIME_TO_LIVE.days} days; leave it out for a message that never expires",
    ),
}
"""Fewest and most milliseconds, and the rule in words."""
LARGEST_CODE = 2**31 - 1
NO_BODY = "body is null; give '' for an empty body, or say with when= which messages have a result"
NO_CODE = "code is null, and so is body; give one of them, or leave the row out"
CODE_AND_BODY = "has code and body; a reply is a message or a number: give one or the other"
DELAY_AND_LIFETIME = (
    "has delay and time_to_live; delayed delivery with a time to live is not supported: give one or the other"
)


def check_span(what: str, name: str, seconds: float | timedelta) -> None:
    """Refuse a constant delay or lifetime that is out of range; raises a ConfigurationError."""
    given = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
    lowest, highest, rule = SPANS[name]
    if not (np.isfinite(given) and lowest <= round(given * 1000) <= highest):
        raise ConfigurationError(f"{what}: {name} is {given:g} s; it has to be {rule}")


def in_milliseconds(fields: Mapping[str, Any], name: str) -> tuple[Array, dict[int, str]]:
    """Delays or lifetimes as whole numbers, null where there is none or a bad one, and the bad ones by position."""
    given = fields[name]
    lowest, highest, rule = SPANS[name]
    is_given = given.is_valid().to_numpy(zero_copy_only=False)
    exact = pc.fill_null(pc.cast(given, pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)
    whole = np.rint(exact)
    fits = np.isfinite(whole) & (whole >= lowest) & (whole <= highest)
    problems = {
        at: f"{_subject(fields, at)}: {name} is {exact[at] / 1000:g} s; it has to be {rule}"
        for at in np.flatnonzero(is_given & ~fits).tolist()
    }
    return pa.array(np.where(fits, whole, 0).astype(np.int64), mask=~(is_given & fits)), problems


def bad_values(fields: Mapping[str, Any], typed: Collection[str], count: int) -> dict[int, str]:
    """Why results of an outcome cannot be sent, by position; `typed` are the queues with a declared message type."""
    found: dict[int, str] = {}

    def note(where: Any, problem: str | Callable[[int], str]) -> None:
        for at in np.flatnonzero(where).tolist():
            text = problem if isinstance(problem, str) else problem(at)
            found.setdefault(at, f"{_subject(fields, at)}: {text}")

    no_body, no_code = _is_null(fields, "body", count), _is_null(fields, "code", count)
    if "reply" not in fields:
        to = "event" if "event" in fields else "destination"
        note(_is_null(fields, to, count), f"{to} is null")
        note(_is_empty(fields, to, count), f"{to} is empty")
    note(no_body & no_code, NO_CODE if "code" in fields else NO_BODY)
    note(~no_body & ~no_code, CODE_AND_BODY)
    if "code" in fields:
        codes = pc.fill_null(pc.cast(fields["code"], pa.int64()), 0).to_numpy(zero_copy_only=False)
        note((codes > LARGEST_CODE) | (codes < -LARGEST_CODE - 1), lambda at: f"code is {codes[at]}, over 32 bits")
    if "message_type" in fields:
        untyped = _is_null(fields, "message_type", count) & no_code
        if untyped.any() and "destination" in fields:
            untyped &= ~pc.is_in(fields["destination"], pa.array(list(typed), pa.string())).to_numpy(
                zero_copy_only=False
            )
        note(untyped, "message_type is null, and none is declared for the queue")
        note(_is_empty(fields, "message_type", count), "message_type is empty")
    note(~_is_null(fields, "delay", count) & ~_is_null(fields, "time_to_live", count), DELAY_AND_LIFETIME)
    return found


def _subject(fields: Mapping[str, Any], at: int) -> str:
    if "reply" in fields:
        return "reply"
    what, name = ("publish of", "event") if "event" in fields else ("send to", "destination")
    named = fields[name][at].as_py() if name in fields else None
    return f"{what} {named}" if named else what.split()[0]


def _is_null(fields: Mapping[str, Any], name: str, count: int) -> Any:
    if name not in fields:
        return np.ones(count, bool)
    return fields[name].is_null().to_numpy(zero_copy_only=False)


def _is_empty(fields: Mapping[str, Any], name: str, count: int) -> Any:
    if name not in fields:
        return np.zeros(count, bool)
    return pc.fill_null(pc.equal(fields[name], ""), False).to_numpy(zero_copy_only=False)
