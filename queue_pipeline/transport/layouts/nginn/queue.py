"""Operations that only NGinn queues have."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from queue_pipeline.errors import ConfigurationError, check_positive
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL
from queue_pipeline.transport.layouts.nginn.control import ControlMessages
from queue_pipeline.transport.layouts.nginn.endpoint import NGINN
from queue_pipeline.transport.layouts.nginn.incoming import Incoming
from queue_pipeline.transport.layouts.nginn.receiving import NGinnReceiver
from queue_pipeline.transport.layouts.nginn.sequences import Sequences
from queue_pipeline.transport.layouts.nginn.subscriptions import NGinnSubscriptions
from queue_pipeline.transport.send import Sender

DEFAULT_MINUTES = 5


@dataclass(frozen=True, slots=True)
class NGinnFigures:
    """A queue by subqueue, and how long messages waited; messages in work count as scheduled."""

    ready: int
    scheduled: int
    processed: int
    failed: int
    latency_milliseconds: float | None
    """The average time between being due and being processed, over those due in the last minutes."""


@dataclass(frozen=True, slots=True)
class NGinnFailed:
    """A message that failed for good."""

    id: int
    unique_id: str | None
    label: str | None
    attempts: int
    error: str | None
    seconds_ago: float


class NGinnQueues:
    """Figures, failed messages and subscriptions of NGinn queues."""

    def __init__(self, database: Database, book: AddressBook, sender: Sender) -> None:
        self._database = database
        self._book = book
        self._sender = sender

    @functools.cached_property
    def subscriptions(self) -> NGinnSubscriptions:
        """Who subscribed to what."""
        return NGinnSubscriptions(self._database, self._book, self._sender)

    @functools.cached_property
    def incoming(self) -> Incoming:
        """What happens to messages before they are worked on."""
        control = ControlMessages(self._book, self._sender, self.subscriptions)
        return Incoming(self._database, self._book, control, Sequences(self._database, self._book))

    @functools.cached_property
    def receiver(self) -> NGinnReceiver:
        """Receives in an open transaction."""
        return NGinnReceiver(self._database, self._book, self.incoming)

    def figures(self, queue: QueueTable, minutes: int = DEFAULT_MINUTES) -> NGinnFigures:
        """The statistics of a queue, counted by the index on subqueue and due time."""
        check_positive(queue, minutes, f"a latency over {minutes} minutes")
        command = self._statement("statistics", queue)
        row = self._database.rows(command, minutes=minutes)[0]
        ready, scheduled, processed, failed = (int(value or 0) for value in row[:4])
        return NGinnFigures(ready, scheduled, processed, failed, None if row[4] is None else round(float(row[4]), 1))

    def failed(self, queue: QueueTable, after: int = BEFORE_ALL, limit: int = 100) -> list[NGinnFailed]:
        """Messages that failed for good, oldest first, after an id."""
        command = self._statement("failed_list", queue)
        rows = self._database.rows(command, after=after, limit=limit)
        return [
            NGinnFailed(int(row_id), unique_id, label, int(attempts), error, float(milliseconds or 0) / 1000)
            for row_id, unique_id, label, attempts, error, milliseconds in rows
        ]

    def retry_failed(self, queue: QueueTable, *ids: int) -> int:
        """Make failed messages ready again, as new: those with the given ids, or all; returns how many."""
        if not ids:
            return self._database.count(self._statement("failed_retry", queue))
        return self._each("failed_retry_one", queue, ids)

    def discard_failed(self, queue: QueueTable, *ids: int) -> int:
        """Delete failed messages for good, by their ids; returns how many."""
        return self._each("failed_drop_one", queue, ids)

    def _each(self, name: str, queue: QueueTable, ids: tuple[int, ...]) -> int:
        command = self._statement(name, queue)
        return self._database.run(lambda own: sum(own.count(command, row_version=one) for one in ids))

    def _statement(self, name: str, queue: QueueTable) -> Command:
        claimed = self._book.claim_tables(queue).claimed
        return self._database.dialect.statement(f"nginn/queue.{name}", queue=queue, claimed=claimed)


def require_nginn(queue: QueueTable) -> QueueTable:
    """Refuse a queue that is not one of NGinn's."""
    if queue.layout != NGINN:
        raise ConfigurationError(f"queue {queue} is no NGinn queue; name it as sql://alias/Queue")
    return queue
