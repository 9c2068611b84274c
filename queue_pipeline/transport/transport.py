"""The transport's front door: one object a database, a method for each thing that can be done to a queue."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from queue_pipeline.errors import check_positive
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.claims.claim import DEFAULT_LEASE_SECONDS, DEFAULT_MAX_BYTES, Claim
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.index_audit.audit import Finding, indexes_to_warn_of
from queue_pipeline.transport.inspection.browse import DEFAULT_LIMIT as DEFAULT_BROWSED
from queue_pipeline.transport.inspection.browsed import Browsed, BrowsedMessage
from queue_pipeline.transport.inspection.status import MOST_COUNTED, QueueStatus
from queue_pipeline.transport.messages.event import Event, event_of
from queue_pipeline.transport.messages.message import Operation, OutgoingMessage, TransactionMode
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline.transport.operations.install import Installed, InstallOptions, run_steps, steps
from queue_pipeline.transport.parts import TransportParts
from queue_pipeline.transport.publish import published
from queue_pipeline.transport.receive import Received, Receiver

if TYPE_CHECKING:
    from sqlalchemy import Connection

Queue = str | QueueAddress | QueueTable

DEFAULT_MAX_RECORDS_TO_PEEK = 1_000
DEFAULT_PURGE_BATCH = 10_000
DEFAULT_MOVE_BATCH = 1_000

logger = logging.getLogger(__name__)
_warned: set[tuple[str, str]] = set()


class QueueTransport(TransportParts):
    """Tables as queues on one database. Nothing is opened before the first use; safe to share between threads."""

    def resolve(self, queue: Queue) -> QueueTable:
        """The table that an address means here."""
        return self.book.resolve(queue)

    def install(
        self,
        *queues: Queue,
        options: InstallOptions | None = None,
        plain_queues: Iterable[Queue] | None = None,
    ) -> list[Installed]:
        """Create queues with all that belongs to them, and plain ones (by default the error queue)."""
        plain: list[Queue] = [self.error_queue] if plain_queues is None else list(plain_queues)
        full, bare = ([self.resolve(queue) for queue in chosen] for chosen in (queues, plain))
        made = steps(self.book, full, bare, options or InstallOptions())
        return list(run_steps(self.database, made))

    def send(
        self,
        destination: Queue,
        messages: OutgoingMessage | Iterable[OutgoingMessage],
        connection: Connection | None = None,
    ) -> int:
        """Send one or many messages to one queue."""
        return self.sender.send(destination, messages, self._joined(connection))

    def dispatch(self, operations: Iterable[Operation], connection: Connection | None = None) -> int:
        """Send messages to several queues, all or none."""
        return self.sender.dispatch(operations, self._joined(connection))

    def dispatch_columns(self, ready: Iterable[MessageColumns], connection: Connection | None = None) -> int:
        """Send messages that come as columns to several queues, all or none."""
        return self.sender.dispatch_columns(ready, self._joined(connection))

    def publish(
        self,
        event: Event | str,
        messages: OutgoingMessage | Iterable[OutgoingMessage],
        connection: Connection | None = None,
    ) -> int:
        """Send a copy of an event to each subscriber; returns how many copies were written.

        Subscribers are read outside of the caller's transaction, and known for a few seconds.
        """
        declared = event_of(event)
        batch = [messages] if isinstance(messages, OutgoingMessage) else messages
        copies = [published(declared, message) for message in batch]
        subscribers = self.subscriptions.subscribers(declared.topics)
        with self.subscriptions.named(declared.topics, subscribers):
            return self.dispatch([Operation(one, copy) for one in subscribers for copy in copies], connection)

    def peek(self, queue: Queue, max_records_to_peek: int = DEFAULT_MAX_RECORDS_TO_PEEK) -> int:
        """How many messages wait, counted up to a limit: as fast on a long queue as on a short one, without a lock."""
        table = self.resolve(queue)
        check_positive(table, max_records_to_peek, f"a peek of {max_records_to_peek} records")
        command = self.database.dialect.statement(f"{table.layout}/queue.peek", queue=table)
        return int(self.database.rows(command, limit=max_records_to_peek)[0][0])

    def show(self, queue: Queue, max_messages: int = 10) -> Sequence[BrowsedMessage]:
        """The oldest messages, left where they are."""
        table = self.resolve(queue)
        check_positive(table, max_messages, f"{max_messages} messages to show")
        rows = self.layouts.of(table).rows
        return self.database.run(lambda own: rows.show(own, table, max_messages), write=False)

    def browse(
        self, queue: Queue, limit: int | None = DEFAULT_BROWSED, on_progress: Callable[[int], object] | None = None
    ) -> Browsed:
        """The oldest messages that wait, left where they are: as objects, as Arrow, as pandas. None: all of them."""
        return self.browser.browse(self.resolve(queue), limit, on_progress)

    def browse_failed(
        self,
        queue: Queue | None = None,
        selection: Selection | None = None,
        limit: int | None = DEFAULT_BROWSED,
        on_progress: Callable[[int], object] | None = None,
    ) -> Browsed:
        """The same for messages that failed, with their reasons: those of an error queue, or of an NGinn queue."""
        return self.browser.browse_failed(self.resolve(queue or self.error_queue), selection, limit, on_progress)

    @contextlib.contextmanager
    def receive(
        self,
        queue: Queue,
        max_messages: int = 100,
        mode: TransactionMode = TransactionMode.SENDS_ATOMIC_WITH_RECEIVE,
    ) -> Iterator[Received]:
        """A batch of messages under one of the four transaction modes; see `Receiver.receive`."""
        table = self.resolve(queue)
        self.warn_of_missing_indexes(table)
        receiver = Receiver(self.database, self.sender, self.claims, self.layouts)
        with receiver.receive(table, max_messages, mode) as batch:
            yield batch

    def claim(
        self,
        queue: Queue,
        owner: str,
        max_messages: int,
        max_bytes: int = DEFAULT_MAX_BYTES,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
    ) -> Claim | None:
        """The next batch of a queue, held until it is completed; see `Claims.claim`."""
        table = self.resolve(queue)
        self.warn_of_missing_indexes(table)
        return self.claims.claim(table, owner, max_messages, max_bytes, lease_seconds)

    def status(self, *queues: Queue) -> list[QueueStatus]:
        """The figures of the given queues, or of every queue in the default schema."""
        tables = map(self.resolve, queues) if queues else self.queues()
        return [self.layouts.of(table).tables.status(table, MOST_COUNTED) for table in tables]

    def queues(self) -> list[QueueTable]:
        """Every table in the default schema that has the shape of a queue."""
        return [queue for layout in self.layouts for queue in layout.tables.discover()]

    def issued(self, queue: Queue) -> int | None:
        """The last number that a queue gave to a message, which counts arrivals; None where that is not known."""
        table = self.resolve(queue)
        return self.layouts.of(table).tables.issued(table)

    def purge(
        self, queue: Queue, batch: int = DEFAULT_PURGE_BATCH, on_progress: Callable[[int], object] | None = None
    ) -> int:
        """Delete what need not be kept, one batch per transaction; `on_progress` gets the total after each."""
        table, total = self.resolve(queue), 0
        check_positive(table, batch, f"a purge batch of {batch}")
        tables = self.layouts.of(table).tables
        while True:
            deleted = tables.purge(table, batch)
            total += deleted
            if on_progress is not None:
                on_progress(total)
            if deleted < batch:
                return total

    def move_due(self, queue: Queue, batch: int = DEFAULT_MOVE_BATCH, *, once: bool = False) -> int:
        """Move everything that is due now, or `once` one batch, in one transaction per batch; returns how many."""
        table = self.resolve(queue)
        check_positive(table, batch, f"a batch of {batch} delayed messages")
        return self.layouts.of(table).delayed.move_due(table, batch, once=once)

    def next_due_seconds(self, queue: Queue) -> float | None:
        """Seconds until the next message is due on the database's clock, negative when overdue; None without one."""
        table = self.resolve(queue)
        return self.layouts.of(table).delayed.next_due_seconds(table)

    def audit_indexes(self, *queues: Queue) -> list[Finding]:
        """What is missing, outdated or bloated on the given queues, or on every queue in the default schema."""
        tables = map(self.resolve, queues) if queues else self.queues()
        return [finding for table in tables for finding in self.layouts.of(table).tables.audit(table)]

    def warn_of_missing_indexes(self, queue: Queue) -> None:
        """Log missing indexes, once a process and queue; a check that fails is a warning too, never an error."""
        table = self.resolve(queue)
        key = (str(self.database), table.qualified)
        if key in _warned:
            return
        _warned.add(key)
        for finding in indexes_to_warn_of(self.layouts, table):
            logger.warning("%s", finding)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction in which the caller sends, together with statements of its own: SQLAlchemy's connection."""
        with self.database.transaction() as transaction, transaction.scope():
            yield transaction.connection

    def enlist(self, connection: Connection) -> Connection:
        """Check that queues can join a caller's connection; methods that take a connection do the same."""
        return self.database.enlist(connection).connection

    def _joined(self, connection: Connection | None) -> Transaction | None:
        return None if connection is None else self.database.enlist(connection)

    def close(self) -> None:
        """Close the idle connections; the transport can still be used and opens new ones."""
        self.database.close()

    def __enter__(self) -> QueueTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
