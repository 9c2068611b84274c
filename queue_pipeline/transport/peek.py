"""Peek: how much waits, and what it looks like, without taking anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.layouts.nginn.rows import StoredRow, is_nginn, message_headers, row_id
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.layouts.nginn.sorting import RowSummary, sort_rows
from queue_pipeline.transport.messages import from_row
from queue_pipeline.transport.queues import QueueTable

DEFAULT_MAX_RECORDS_TO_PEEK = 1_000


@dataclass(frozen=True, slots=True)
class Shown:
    """A waiting message as it is stored; `headers` is None when they cannot be read."""

    id: str
    row_version: int
    expired: bool
    headers: dict[str, str] | None
    raw_headers: str
    body: bytes


class Peeker:
    """Looks at a queue; takes no lock that a receiver would notice."""

    def __init__(self, database: Database, nginn: NGinnSettings | None = None) -> None:
        self._database = database
        self._nginn = nginn or NGinnSettings()

    def peek(self, queue: QueueTable, max_records_to_peek: int = DEFAULT_MAX_RECORDS_TO_PEEK) -> int:
        """How many messages wait, counted up to a limit: the same work on a short queue and on a long one."""
        if max_records_to_peek < 1:
            raise ConfigurationError(f"queue {queue}: a peek of {max_records_to_peek} records; ask for at least one")
        command = self._database.dialect.statement(f"{queue.layout}/queue.peek", queue=queue)
        return self._database.run(lambda own: own.count(command, limit=max_records_to_peek), write=False)

    def show(self, queue: QueueTable, max_messages: int = 10) -> list[Shown]:
        """The oldest messages, left where they are."""
        if max_messages < 1:
            raise ConfigurationError(f"queue {queue}: {max_messages} messages to show; ask for at least one")
        dialect = self._database.dialect

        def look(own: Transaction) -> list[Shown]:
            if is_nginn(queue):
                rows = own.rows(dialect.statement("nginn/queue.show", queue=queue), limit=max_messages)
                return [_shown_in_place(queue, row, self._nginn) for row in rows]
            columns = self._database.shapes.columns(own, queue)
            names = dialect.optional_columns(columns, "q")
            command = dialect.statement(f"{queue.layout}/queue.show", queue=queue, **names)
            return [_shown(*row) for row in own.rows(command, limit=max_messages)]

        return self._database.run(look, write=False)


def _shown_in_place(queue: QueueTable, row: Any, settings: NGinnSettings) -> Shown:
    *values, now = row
    stored = StoredRow(*values)
    found = sort_rows([RowSummary(stored.id, "", stored.headers, stored.text, now)], queue, None)
    headers = None if found.refused else message_headers(queue.canonical, stored, settings)
    body = (stored.text or "").encode()
    return Shown(row_id(queue.canonical, stored), stored.id, bool(found.expired), headers, stored.headers or "", body)


def _shown(
    row_id: str,
    row_version: int,
    expired: int,
    header_text: str,
    body: bytes | None,
    correlation_id: str | None,
    reply_to: str | None,
) -> Shown:
    try:
        headers = from_row(row_id, row_version, header_text, body, correlation_id, reply_to).headers
    except ValueError:
        headers = None
    return Shown(str(row_id).lower(), int(row_version), bool(expired), headers, header_text, bytes(body or b""))
