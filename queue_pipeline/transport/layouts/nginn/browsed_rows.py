"""A row of an NGinn queue as a message that is looked at; one that failed has the headers of a failure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.browsed import BrowsedMessage
from queue_pipeline.transport.layouts.nginn.rows import StoredRow, message_headers, row_id
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.layouts.nginn.sorting import RowSummary, sort_rows
from queue_pipeline.transport.queues import QueueTable


def browsed_row(queue: QueueTable, row: Any, settings: NGinnSettings, *, failed: bool) -> BrowsedMessage:
    """The message of a row of section `browse`, or of `failed_browse`."""
    if failed:
        *row, error, milliseconds = row
    *values, now = row
    stored = StoredRow(*values)
    body = (stored.text or "").encode(errors="replace")
    found = sort_rows([RowSummary(stored.id, "", stored.headers, stored.text, now)], queue, None)
    failure = _failure(queue, error, milliseconds) if failed else {}
    try:
        headers, problem = message_headers(queue.canonical, stored, settings), None
    except ValueError as refusal:
        headers, problem = {}, str(refusal)
    identity = row_id(queue.canonical, stored)
    return BrowsedMessage(identity, stored.id, {**headers, **failure}, body, bool(found.expired), problem)


def _failure(queue: QueueTable, error: str | None, milliseconds: float | None) -> dict[str, str]:
    """What the columns say of a failure: the first line of the error is its type and its text."""
    trace = (error or "").strip()
    kind, colon, text = trace.partition("\n")[0].strip().partition(": ")
    is_type = colon and " " not in kind
    facts = {
        wire.FAILED_QUEUE: queue.canonical,
        wire.EXCEPTION_TYPE: kind if is_type else "",
        wire.EXCEPTION_MESSAGE: text if is_type else trace.partition("\n")[0].strip(),
        wire.EXCEPTION_STACK_TRACE: trace,
    }
    if milliseconds is not None:
        moment = datetime.now(UTC) - timedelta(milliseconds=float(milliseconds))
        facts[wire.TIME_OF_FAILURE] = wire.format_timestamp(moment)
    return {name: value for name, value in facts.items() if value}
