"""The copies of messages that failed: to the error queue, or to the delayed table for another try later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.declaration.recoverability import DelayedRetry, retry_headers
from queue_pipeline.transport.claims.completion import FailedRow
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.failed.error_message import Failure, error_message
from queue_pipeline.transport.failed.stack_frames import Frame, trace_at
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns

SHORTEST_TRACE = 2_048
MOST_TRACES = 16 * 1024 * 1024
"""Characters of stack traces that a batch writes at most, unless it is many messages: each says the same."""
_COLUMNS = ["id", "row_version", "message_id", "message_type", "headers", "body"]


Retry: TypeAlias = Callable[[Mapping[str, str]], DelayedRetry | None]
"""The next retry of a message, by its headers; None: it has failed for good."""


def never(_: Mapping[str, str]) -> DelayedRetry | None:
    """No message is tried again."""
    return None


@dataclass(frozen=True, slots=True)
class MessageFailure:
    """A message that went to the error queue."""

    id: str
    message_type: str | None
    error_type: str
    error: str
    message_id: str = ""
    failed_at: datetime = field(default_factory=lambda: datetime.now(UTC), compare=False)


@dataclass(frozen=True, slots=True)
class FailedCopies:
    """What is written for messages that failed, and which of them went to the error queue."""

    ready: Sequence[MessageColumns]
    failed: Sequence[MessageFailure]
    delayed: int
    marks: Sequence[FailedRow] = ()
    """What becomes of messages of an NGinn queue, of which no copies are made."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """Who processed messages: what it calls itself, and the queues by which its copies come and go."""

    endpoint_name: str
    input_queue: str
    error_queue: str


def failed_copies(
    consumer: Consumer,
    address: str,
    messages: Table,
    reasons: Mapping[int, Failure],
    now: datetime,
    retry: Retry = never,
) -> FailedCopies:
    """The copies of messages, each with its own reason by row version; `retry` decides which are tried again.

    Columns, unlike operations, keep two messages with the same id.
    """
    errors, later = _CopyColumns(), _CopyColumns()
    failed: list[MessageFailure] = []
    for row in messages.select(_COLUMNS).to_pylist():
        reason = reasons[row["row_version"]]
        headers = wire.decode(row["headers"])
        headers.pop(wire.FORWARD_DESTINATION, None)
        again = retry(headers)
        if again is not None:
            if not headers.get(wire.MESSAGE_ID):
                headers[wire.MESSAGE_ID] = row["message_id"]
            milliseconds = round(again.delay.total_seconds() * 1000)
            later.add(row["message_id"], milliseconds, retry_headers(headers, again, now, address), row["body"])
            continue
        failure = replace(reason, data={**_message_data(row), **reason.data})
        copy = error_message(
            headers, row["body"], failure, address, consumer.endpoint_name, now, message_id=row["message_id"]
        )
        errors.add(row["message_id"], NEVER_EXPIRES, copy.headers, row["body"])
        failed.append(_message_failure(row, reason))
    ready = [errors.ready(consumer.error_queue, False), later.ready(consumer.input_queue, True)]
    return FailedCopies([one for one in ready if one.ids], failed, len(later.ids))


def failed_in_place(messages: Table, reasons: Mapping[int, Failure], retry: Retry = never) -> FailedCopies:
    """What becomes of messages of an NGinn queue: each stays where it is, to be tried again or as a failed one."""
    marks: list[FailedRow] = []
    failed: list[MessageFailure] = []
    for row in messages.select(["id", "row_version", "message_id", "message_type", "headers"]).to_pylist():
        reason = reasons[row["row_version"]]
        again = retry(wire.decode(row["headers"]))
        text = reason.stack_trace or f"{reason.error_type}: {reason.message}"
        milliseconds = None if again is None else round(again.delay.total_seconds() * 1000)
        marks.append(FailedRow(row["row_version"], text, milliseconds))
        if again is None:
            failed.append(_message_failure(row, reason))
    return FailedCopies((), failed, len(marks) - len(failed), marks)


def with_place(failures: Mapping[int, Failure], place: Frame) -> dict[int, Failure]:
    """The same failures, with `place` as the stack trace of those that have none."""
    return {
        version: one if one.stack_trace else replace(one, stack_trace=trace_at(one.error_type, one.message, [place]))
        for version, one in failures.items()
    }


def same_reason(messages: Table, failure: Failure) -> dict[int, Failure]:
    """One reason for all of them; of many, each gets a shorter stack trace, cut at the end of a line."""
    longest = max(SHORTEST_TRACE, MOST_TRACES // max(1, messages.num_rows))
    trace = failure.stack_trace
    if len(trace) > longest:
        trace = trace[:longest].rpartition("\n")[0]
    return dict.fromkeys(messages["row_version"].to_pylist(), replace(failure, stack_trace=trace))


def ids_of(failed: Iterable[MessageFailure]) -> list[str]:
    """The ids by which a person finds them in the error queue."""
    return [one.message_id or one.id for one in failed]


def _message_failure(row: Mapping[str, Any], reason: Failure) -> MessageFailure:
    return MessageFailure(row["id"], row["message_type"], reason.error_type, reason.message, row["message_id"])


def _message_data(row: Mapping[str, Any]) -> dict[str, str]:
    data = {"Message ID": row["message_id"], "Transport message ID": row["id"]}
    return {"Message type": row["message_type"], **data} if row["message_type"] else data


class _CopyColumns:
    def __init__(self) -> None:
        self.ids: list[str] = []
        self._milliseconds: list[int] = []
        self._headers: list[str] = []
        self._bodies: list[bytes] = []

    def add(self, message_id: str, milliseconds: int, headers: Mapping[str, str], body: bytes) -> None:
        self.ids.append(message_id)
        self._milliseconds.append(milliseconds)
        self._headers.append(wire.encode(headers))
        self._bodies.append(body)

    def ready(self, queue: str, delayed: bool) -> MessageColumns:
        return MessageColumns(queue, delayed, self.ids, self._milliseconds, self._headers, self._bodies)
