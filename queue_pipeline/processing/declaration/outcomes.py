"""Outcomes as Spark expressions: sends, replies, events, failures and table rows.

Each function makes one outcome of a row. `each` puts all of them on one row, so that Spark computes a batch once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, timedelta
from decimal import Decimal
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.results.bad_values import check_span
from queue_pipeline.transport.messages.event import full_name
from queue_pipeline.transport.publish import NO_DELAY

OUTCOME = "outcome"
"""The column that `each` makes: a struct of one field per outcome, null where it does not hold."""
TABLE, KEY, VALUES, ADDED = "table", "key", "values", "added"
"""The fields of an outcome that is a table row. `added` are added to what is stored for the `key`, `values` replace it;
without a key the row is appended.
"""

Text: TypeAlias = "str | Column"
Seconds: TypeAlias = "float | timedelta | Column"
Number: TypeAlias = "int | Column"
Value: TypeAlias = "str | int | float | Decimal | date | Column | None"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One message that is sent, published or replied, or one failure; give it to `each`."""

    destination: Text | None = None
    reply: bool = False
    body: Column | None = None
    message_type: Text | None = None
    headers: Column | Mapping[str, Text] | None = None
    delay: Seconds | None = None
    time_to_live: Seconds | None = None
    error: Text | None = None
    error_type: Text | None = None
    when: Column | None = None
    code: Number | None = None
    event: Text | None = None
    ordinal: Column | None = None

    def column(self) -> Column:
        """The outcome as a struct of the fields that it has; null where `when` does not hold."""
        given = {
            "destination": _optional_text(self.destination),
            "reply": F.lit(True) if self.reply else None,
            "body": self.body if self.body is None else self.body.cast("binary"),
            "message_type": _optional_text(self.message_type),
            "headers": header_map(self.headers),
            "delay": milliseconds(self.delay),
            "time_to_live": milliseconds(self.time_to_live),
            "ordinal": self.ordinal if self.ordinal is None else self.ordinal.cast("long"),
            "error": _optional_text(self.error),
            "error_type": _optional_text(self.error_type),
            "code": self.code if self.code is None else _column(self.code).cast("long"),
            "event": _optional_text(self.event),
        }
        made = F.struct(*(value.alias(name) for name, value in given.items() if value is not None))
        return made if self.when is None else F.when(self.when, made)


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row for a table of the user's own; give it to `each`."""

    table: str
    values: Mapping[str, Value] = field(default_factory=dict)
    key: Mapping[str, Value] = field(default_factory=dict)
    added: Mapping[str, Value] = field(default_factory=dict)
    when: Column | None = None

    def column(self) -> Column:
        """The row as a struct of the fields that it has; null where `when` does not hold."""
        given = {KEY: self.key, VALUES: self.values, ADDED: self.added}
        parts = [_row(columns).alias(name) for name, columns in given.items() if columns]
        made = F.struct(F.lit(self.table).alias(TABLE), *parts)
        return made if self.when is None else F.when(self.when, made)


OUTCOME_FIELDS = tuple(one.name for one in fields(Outcome) if one.name != "when")
"""The fields of an outcome that is a message or a failure."""


def send(
    queue: Text,
    *,
    json: Column | None = None,
    body: Column | None = None,
    message_type: Text | None = None,
    headers: Column | Mapping[str, Text] | None = None,
    delay: Seconds | None = None,
    time_to_live: Seconds | None = None,
    when: Column | None = None,
) -> Outcome:
    """A message for one of the pipeline's output queues: `json` is a struct, map or array, `body` text or bytes.

    `delay` and `time_to_live` are seconds. `when` is a condition: where it does not hold, nothing is sent.
    """
    what = f"send to {queue!r}" if isinstance(queue, str) else "send"
    content = _content(what, json, body, delay, time_to_live)
    return Outcome(queue, False, content, message_type, headers, delay, time_to_live, when=when)


def reply(
    *,
    json: Column | None = None,
    body: Column | None = None,
    code: Number | None = None,
    message_type: Text | None = None,
    headers: Column | Mapping[str, Text] | None = None,
    delay: Seconds | None = None,
    time_to_live: Seconds | None = None,
    when: Column | None = None,
) -> Outcome:
    """A message to the sender of the one that is being processed, at its reply-to address.

    `code` in place of a body is a whole number for a callback; where it is null, no reply is sent.
    """
    if code is None:
        content = _content("reply", json, body, delay, time_to_live)
        return Outcome(None, True, content, message_type, headers, delay, time_to_live, when=when)
    if json is not None or body is not None or message_type is not None:
        raise ConfigurationError("reply: a code has neither body nor type; give code=, or json= or body= with its type")
    _check_lifetime("reply", delay, time_to_live)
    if isinstance(code, Column):
        when = code.isNotNull() if when is None else when & code.isNotNull()
    return Outcome(None, True, None, None, headers, delay, time_to_live, when=when, code=code)


def publish(
    event: Text,
    *,
    json: Column | None = None,
    body: Column | None = None,
    headers: Column | Mapping[str, Text] | None = None,
    time_to_live: Seconds | None = None,
    delay: Seconds | None = None,
    when: Column | None = None,
) -> Outcome:
    """An event of a type that the pipeline `publishes`, for all its subscribers; `delay` is refused."""
    what = f"publish of {event!r}" if isinstance(event, str) else "publish"
    if delay is not None:
        raise ConfigurationError(f"{what}: {NO_DELAY}")
    content = _content(what, json, body, None, time_to_live)
    named = full_name(event) if isinstance(event, str) else event
    return Outcome(body=content, headers=headers, time_to_live=time_to_live, when=when, event=named)


def fail(error: Text, *, error_type: Text | None = None, when: Column | None = None) -> Outcome:
    """This message goes to the error queue. Without `when`, it fails where `error` is not null."""
    condition = error.isNotNull() if when is None and isinstance(error, Column) else when
    return Outcome(error=error, error_type=error_type, when=condition)


def add_to(table: str, *, key: Mapping[str, Value], add: Mapping[str, Value], when: Column | None = None) -> TableRow:
    """Add numbers to the row of a table that has this key, or insert it: in the transaction that completes the batch.

    The rows of a batch are summed up by key. The table needs a unique index on the key.
    """
    if not key or not add:
        raise ConfigurationError(f"add_to {table!r}: give key={{column: value}} and add={{column: number}}")
    if twice := sorted(set(key) & set(add)):
        raise ConfigurationError(f"add_to {table!r}: {', '.join(twice)} is in key and in add; leave it in one of them")
    return TableRow(table, key=key, added=add, when=when)


def append_to(table: str, values: Mapping[str, Value], *, when: Column | None = None) -> TableRow:
    """Insert a row into a table, in the transaction that completes the batch."""
    if not values:
        raise ConfigurationError(f"append_to {table!r}: give the row as {{column: value}}")
    return TableRow(table, values, when=when)


def each(*outcomes: Outcome | TableRow) -> Column:
    """All that becomes of a row, for `messages.select("origin", each(...))`."""
    if not outcomes:
        raise ConfigurationError(
            "each() needs at least one outcome: send(...), reply(...), publish(...), fail(...), add_to(...) or "
            "append_to(...)"
        )
    columns = [outcome.column().alias(position_name(at)) for at, outcome in enumerate(outcomes)]
    return F.struct(*columns).alias(OUTCOME)


def position_name(position: int) -> str:
    """The name of an outcome among those of its row."""
    return f"_{position}"


@dataclass(frozen=True, slots=True)
class Append:
    """Rows to insert with the completion; `origin` names the message of a row, the other columns are the table's."""

    table: str
    rows: DataFrame


@dataclass(frozen=True, slots=True)
class Merge:
    """Rows that replace those with the same key, or are inserted; the columns in `add` are added to what is stored."""

    table: str
    rows: DataFrame
    key: Sequence[str]
    add: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """All that a transform can return: sends are one frame, several, or one per queue; publications one per type."""

    sends: DataFrame | Sequence[DataFrame] | Mapping[str, DataFrame] | None = None
    replies: DataFrame | None = None
    failures: DataFrame | None = None
    tables: Sequence[Append | Merge] = ()
    publications: Mapping[str, DataFrame] = field(default_factory=dict)


def text(value: Text) -> Column:
    """A text or a column, as a text column."""
    return _column(value).cast("string")


def milliseconds(value: Seconds | None) -> Column | None:
    """Seconds as milliseconds, not yet rounded: what does not fit fails its message later, and not the batch here."""
    if value is None:
        return None
    if isinstance(value, Column):
        return value.cast("double") * 1000
    return F.lit((value.total_seconds() if isinstance(value, timedelta) else float(value)) * 1000)


def header_map(value: Column | Mapping[str, Text] | None) -> Column | None:
    """Headers as a map column."""
    if isinstance(value, Mapping):
        pairs = [part for name, content in value.items() for part in (F.lit(name), text(content))]
        value = F.create_map(*pairs) if pairs else None
    return None if value is None else value.cast("map<string,string>")


def _optional_text(value: Text | None) -> Column | None:
    return None if value is None else text(value)


def _column(value: object) -> Column:
    return value if isinstance(value, Column) else F.lit(value)


def _row(values: Mapping[str, Value]) -> Column:
    return F.struct(*(_column(value).alias(name) for name, value in values.items()))


def _content(
    what: str, json: Column | None, body: Column | None, delay: Seconds | None, time_to_live: Seconds | None
) -> Column:
    _check_lifetime(what, delay, time_to_live)
    if json is not None and body is None:
        return F.to_json(json)
    if body is not None and json is None:
        return body
    raise ConfigurationError(f"{what}: give either json= (a struct, map or array column) or body= (text or bytes)")


def _check_lifetime(what: str, delay: Seconds | None, time_to_live: Seconds | None) -> None:
    for name, value in (("delay", delay), ("time_to_live", time_to_live)):
        if value is not None and not isinstance(value, Column):
            check_span(what, name, value)
    if delay is not None and time_to_live is not None:
        raise ConfigurationError(
            f"{what}: delayed delivery with a time to live is not supported; give one or the other"
        )
