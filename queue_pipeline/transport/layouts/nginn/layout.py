"""The layout of NGinn.MessageBus: its roles, made from what they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.failed.returns import Retried
from queue_pipeline.transport.layouts.layout import Layout
from queue_pipeline.transport.layouts.nginn.claim_rows import NGinnClaimRows
from queue_pipeline.transport.layouts.nginn.queue import NGinnQueues
from queue_pipeline.transport.layouts.nginn.stored_rows import NGinnRows
from queue_pipeline.transport.layouts.nginn.tables import NGinnTables
from queue_pipeline.transport.layouts.nservicebus.subscriptions import Subscriptions
from queue_pipeline.transport.messages.event import Event
from queue_pipeline.transport.messages.message import Destination


class NGinnDelayed:
    """Makes scheduled messages ready when they are due."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def move_due(self, queue: QueueTable, batch: int, *, once: bool = False) -> int:
        """Make messages ready whose time has come, or `once` one batch of them; returns how many."""
        command, total = self._statement("move_due", queue), 0
        while True:
            moved = self._database.count(command, limit=batch)
            total += moved
            if once or moved < batch:
                return total

    def next_due_seconds(self, queue: QueueTable) -> float | None:
        """Seconds until the next message is due, negative when overdue; None without one."""
        found = self._database.rows(self._statement("count_delayed", queue), limit=1)[0][1]
        return None if found is None else float(found) / 1000

    def _statement(self, name: str, queue: QueueTable) -> Command:
        claimed = self._book.claim_tables(queue).claimed
        return self._database.dialect.statement(f"nginn/queue.{name}", queue=queue, claimed=claimed)


class NGinnFailures:
    """Failed messages, chosen by the ids of their rows."""

    def __init__(self, queues: NGinnQueues) -> None:
        self._queues = queues

    def retry(
        self,
        home: QueueTable,
        selection: Selection,
        /,
        to: Destination | None = None,
        *,
        on_progress: Callable[[int], object] | None = None,
    ) -> Retried:
        """Make messages ready again, as new, in the queue that they are in."""
        return Retried(queues=Counter({home.canonical: self._queues.retry_failed(home, *_ids(home, selection))}))

    def discard(
        self, home: QueueTable, selection: Selection, /, *, on_progress: Callable[[int], object] | None = None
    ) -> int:
        """Delete messages for good, all of them some hundred in a transaction; returns how many."""
        if ids := _ids(home, selection):
            return self._queues.discard_failed(home, *ids)
        total = 0
        while found := self._queues.failed(home):
            total += self._queues.discard_failed(home, *(one.id for one in found))
        return total


def _ids(queue: QueueTable, selection: Selection) -> list[int]:
    narrow = selection.message_type or selection.exception or selection.failed_queue
    if narrow or not all(one.isdigit() for one in selection.ids):
        raise ConfigurationError(
            f"failed messages of {queue} are chosen by the ids of their rows, which are numbers, or all: true; see "
            f"them with: queue-pipeline nginn failed {queue}"
        )
    return [int(one) for one in selection.ids]


def nginn_layout(
    database: Database, book: AddressBook, rows: NGinnRows, queues: NGinnQueues, subscriptions: Subscriptions
) -> Layout:
    """What the tables of NGinn.MessageBus mean on one database."""

    def subscribers(queue: QueueTable, event: Event) -> tuple[str, ...]:
        """Subscribers in the shared table, and in NGinn's own table of the publisher."""
        own = queues.subscriptions.subscribers(queue.canonical, event.name, event.topics)
        return (*subscriptions.subscribers(event.topics), *own)

    return Layout(
        rows=rows,
        claims=NGinnClaimRows(database, book, ClaimTable(database, book), queues.incoming),
        receiving=queues.receiver,
        delayed=NGinnDelayed(database, book),
        tables=NGinnTables(database, book, queues),
        failures=NGinnFailures(queues),
        subscribers=subscribers,
        keeps_failed=True,
        retry_seconds=book.nginn.retry_seconds,
    )
