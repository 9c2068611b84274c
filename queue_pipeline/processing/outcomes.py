"""What a transform says should become of a message: sends, replies, events and failures, as Spark expressions.

Each function makes one outcome of a row; `each` puts several of them on one row, so that a batch is read once however
many queues its results go to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.event import full_name
from queue_pipeline.transport.publish import NO_DELAY

OUTCOME = "outcome"
"""The column that `each` makes."""
OUTCOME_FIELDS = (
    "destination",
    "reply",
    "body",
    "message_type",
    "headers",
    "delay",
    "time_to_live",
    "ordinal",
    "error",
    "error_type",
    "code",
    "event",
)

Text: TypeAlias = "str | Column"
Seconds: TypeAlias = "float | timedelta | Column"
Number: TypeAlias = "int | Column"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One thing that becomes of a message; give it to `each`."""

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

    def column(self, ordinal: int) -> Column:
        """The outcome as a struct whose fields are the same for every kind; null where `when` does not hold."""
        fields = F.struct(
            text(self.destination).alias("destination"),
            F.lit(self.reply).alias("reply"),
            (F.lit(None) if self.body is None else self.body).cast("binary").alias("body"),
            text(self.message_type).alias("message_type"),
            header_map(self.headers).alias("headers"),
            milliseconds(self.delay).alias("delay"),
            milliseconds(self.time_to_live).alias("time_to_live"),
            F.lit(ordinal).alias("ordinal"),
            text(self.error).alias("error"),
            text(self.error_type).alias("error_type"),
            (self.code if isinstance(self.code, Column) else F.lit(self.code)).cast("int").alias("code"),
            text(self.event).alias("event"),
        )
        return fields if self.when is None else F.when(self.when, fields)


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
    """A message for whoever sent the one that is being processed, at its reply-to address.

    `code` in place of a body is a whole number for a callback that waits for no more; where it is null, no reply is
    sent.
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
    """An event of a type that the pipeline `publishes`, for everybody who subscribed to it; `delay` is refused."""
    what = f"publish of {event!r}" if isinstance(event, str) else "publish"
    if delay is not None:
        raise ConfigurationError(f"{what}: {NO_DELAY}")
    content = _content(what, json, body, None, time_to_live)
    named = full_name(event) if isinstance(event, str) else event
    return Outcome(body=content, headers=headers, time_to_live=time_to_live, when=when, event=named)


def fail(error: Text, *, error_type: Text | None = None, when: Column | None = None) -> Outcome:
    """This message cannot be processed, and never will be: it goes to the error queue, the rest of the batch goes on.

    Without `when`, a message fails where `error` is not null.
    """
    condition = error.isNotNull() if when is None and isinstance(error, Column) else when
    return Outcome(error=error, error_type=error_type, when=condition)


def each(*outcomes: Outcome) -> Column:
    """The outcomes of a row, for `messages.select("origin", each(...))`: one row comes out for each that holds."""
    if not outcomes:
        raise ConfigurationError("each() needs at least one outcome: send(...), reply(...), publish(...) or fail(...)")
    columns = [outcome.column(ordinal) for ordinal, outcome in enumerate(outcomes)]
    if len(outcomes) == 1 and outcomes[0].when is None:
        return columns[0].alias(OUTCOME)
    return F.explode(F.array_compact(F.array(*columns))).alias(OUTCOME)


@dataclass(frozen=True, slots=True)
class Append:
    """Rows for a table of the user's own, inserted in the transaction that completes the batch."""

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
    """All that a transform can return: sends as one frame, several, or one a queue; failures; replies; own tables;
    publications as one frame for each event type.
    """

    sends: DataFrame | Sequence[DataFrame] | Mapping[str, DataFrame] | None = None
    replies: DataFrame | None = None
    failures: DataFrame | None = None
    tables: Sequence[Append | Merge] = ()
    publications: Mapping[str, DataFrame] = field(default_factory=dict)


def text(value: Text | None) -> Column:
    """A text, a column or nothing, as a text column."""
    return (value if isinstance(value, Column) else F.lit(value)).cast("string")


def milliseconds(value: Seconds | None) -> Column:
    """Seconds as whole milliseconds."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, Column):
        return F.round(value * 1000).cast("long")
    return F.lit(None if value is None else round(value * 1000)).cast("long")


def header_map(value: Column | Mapping[str, Text] | None) -> Column:
    """Headers as a map column; nothing is an empty one."""
    if isinstance(value, Mapping):
        pairs = [part for name, content in value.items() for part in (F.lit(name), text(content))]
        value = F.create_map(*pairs) if pairs else None
    return (F.lit(None) if value is None else value).cast("map<string,string>")


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
    if delay is not None and time_to_live is not None:
        raise ConfigurationError(
            f"{what}: delayed delivery with a time to live is not supported; give one or the other"
        )
