"""Peek: how much waits, and what it looks like, without taking anything."""

from __future__ import annotations

from dataclasses import dataclass

from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.layouts.layout import Layouts

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

    def __init__(self, database: Database, layouts: Layouts) -> None:
        self._database = database
        self._layouts = layouts

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
        rows = self._layouts.of(queue).rows
        return self._database.run(lambda own: rows.show(own, queue, max_messages), write=False)
