"""Ready messages: results that come as columns, checked as columns, without an object for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queue_pipeline.errors import InvalidMessageError
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages.message import LONGEST_DELAY, LONGEST_TIME_TO_LIVE, Destination

_LONGEST_DELAY = round(LONGEST_DELAY.total_seconds() * 1000)
_LONGEST_TIME_TO_LIVE = round(LONGEST_TIME_TO_LIVE.total_seconds() * 1000)


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """Messages for one queue as columns, ready to be stored, without an object per message.

    `headers` are JSON texts; those of delayed messages name their destination.
    """

    destination: Destination
    delayed: bool
    ids: Sequence[str]
    """Message ids, which errors name; they are not compared, and no copy is dropped."""
    milliseconds: Sequence[int]
    """Time to live, `NEVER_EXPIRES` for none; the delay where the messages are delayed."""
    headers: Sequence[str]
    bodies: Sequence[bytes]


def check_columns(ready: MessageColumns, destination: str) -> None:
    """Refuse columns that do not fit together or hold undeliverable values; checks run on whole columns."""
    columns = {name: getattr(ready, name) for name in ("ids", "milliseconds", "headers", "bodies")}
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"{size} {name}" for name, size in sizes.items())
        raise InvalidMessageError(f"ready messages for {destination}: {counts}; every message needs one of each")
    for name, kind in (("headers", str), ("bodies", bytes)):
        if not set(map(type, columns[name])) <= {kind}:
            at = next(at for at, value in enumerate(columns[name]) if type(value) is not kind)
            found = type(columns[name][at]).__name__
            raise InvalidMessageError(
                f"{_subject(ready, at, destination)}: {name} hold {found}, not {kind.__name__}; convert it first"
            )
    with_nul = next((at for at, text in enumerate(ready.headers) if "\0" in text), None)
    if with_nul is not None:
        raise InvalidMessageError(
            f"{_subject(ready, with_nul, destination)}: its headers hold a NUL character, which not every "
            "database stores; write them with a JSON encoder"
        )
    _check_milliseconds(ready, destination)


def _check_milliseconds(ready: MessageColumns, destination: str) -> None:
    times = ready.milliseconds
    if not times:
        return
    if ready.delayed:
        lowest, highest, rule = -_LONGEST_DELAY, _LONGEST_DELAY, "at most a hundred years"
    else:
        lowest, highest = NEVER_EXPIRES, _LONGEST_TIME_TO_LIVE
        rule = f"above zero and at most {highest}; {NEVER_EXPIRES} stands for a message that never expires"
    if lowest <= min(times) and max(times) <= highest and (ready.delayed or 0 not in times):
        return
    at = next(at for at, time in enumerate(times) if not lowest <= time <= highest or (not ready.delayed and not time))
    kind = "a delay" if ready.delayed else "a time to be received"
    raise InvalidMessageError(f"{_subject(ready, at, destination)}: {kind} of {times[at]} ms; it has to be {rule}")


def _subject(ready: MessageColumns, at: int, destination: str) -> str:
    return f"message {ready.ids[at] or '(no id)'} for {destination}"
