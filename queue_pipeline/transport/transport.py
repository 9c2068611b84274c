"""The transport's front door: one object a database, a method for each thing that can be done to a queue."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from queue_pipeline.transport.address import QueueAddress
from queue_pipeline.transport.browse import DEFAULT_LIMIT as DEFAULT_BROWSED
from queue_pipeline.transport.browse import Browser
from queue_pipeline.transport.browsed import Browsed
from queue_pipeline.transport.claims.claim import DEFAULT_LEASE_SECONDS, DEFAULT_MAX_BYTES, Claim
from queue_pipeline.transport.claims.claim_reader import ClaimReader
from queue_pipeline.transport.claims.claims import Claims
from queue_pipeline.transport.claims.failure_counts import FailureCounts
from queue_pipeline.transport.claims.outbox import Outbox
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.setting import absolute
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.event import Event
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.failed.failed_messages import FailedMessages
from queue_pipeline.transport.index_audit.audit import Finding, IndexAuditor
from queue_pipeline.transport.layouts.nginn.queue import NGinnQueues
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings, default_nginn_settings
from queue_pipeline.transport.layouts.nservicebus.delayed import DelayedMover
from queue_pipeline.transport.layouts.nservicebus.forwarding import Forwarder
from queue_pipeline.transport.layouts.nservicebus.subscriptions import Subscriptions
from queue_pipeline.transport.message_columns import MessageColumns
from queue_pipeline.transport.messages import Operation, OutgoingMessage, TransactionMode
from queue_pipeline.transport.operations.install import Installed, Installer, InstallOptions
from queue_pipeline.transport.operations.pauses import Pauses
from queue_pipeline.transport.operations.slots import Slots
from queue_pipeline.transport.operations.user_tables import UserTables
from queue_pipeline.transport.peek import DEFAULT_MAX_RECORDS_TO_PEEK, Peeker, Shown
from queue_pipeline.transport.publish import Publisher
from queue_pipeline.transport.purge import DEFAULT_PURGE_BATCH, Purger
from queue_pipeline.transport.queues import AddressBook, QueueTable
from queue_pipeline.transport.receive import Received, Receiver
from queue_pipeline.transport.send import Sender
from queue_pipeline.transport.settings import TransportSettings
from queue_pipeline.transport.status import QueueStatus, StatusReader

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

Queue = str | QueueAddress | QueueTable

logger = logging.getLogger(__name__)
_warned: set[tuple[str, str]] = set()


class QueueTransport:
    """Tables as queues on one database. Nothing is opened before the first use; safe to share between threads."""

    def __init__(
        self,
        database: str | URL | Engine | None = None,
        *,
        schema: str | None = None,
        catalog: str | None = None,
        queue_schemas: Mapping[str, str] | None = None,
        queue_catalogs: Mapping[str, str] | None = None,
        error_queue: str = "error",
        endpoint: str | None = None,
        subscriptions_table: str | None = None,
        nginn: NGinnSettings | None = None,
    ) -> None:
        """Say where the queues are: a setting, a URL of SQLAlchemy's, or an engine of the caller's own.

        `schema` and `catalog` are the defaults for addresses that name none, `queue_schemas` and `queue_catalogs`
        override them for single tables; `endpoint` is the queue whose `.Delayed` table takes delayed sends;
        `subscriptions_table` is the address of the table of subscriptions, the same for all who share events;
        `nginn` are the settings of NGinn queues, by default those of the environment.
        """
        self.database = Database(database)
        self.error_queue = error_queue
        self._schema = schema
        self._catalog = catalog
        self._queue_schemas = dict(queue_schemas or {})
        self._queue_catalogs = dict(queue_catalogs or {})
        self._endpoint = endpoint
        self._subscriptions_table = subscriptions_table
        self._nginn = nginn or default_nginn_settings()

    @classmethod
    def of(cls, settings: TransportSettings) -> QueueTransport:
        """The transport that another process described."""
        return cls(
            settings.database,
            schema=settings.schema,
            catalog=settings.catalog,
            queue_schemas=settings.queue_schemas,
            queue_catalogs=settings.queue_catalogs,
            error_queue=settings.error_queue,
            endpoint=settings.endpoint,
            nginn=settings.nginn,
            subscriptions_table=settings.subscriptions_table,
        )

    @property
    def settings(self) -> TransportSettings | None:
        """What another process needs to make the same transport; None for an engine of the caller's own."""
        if not self.database.is_own:
            return None
        return TransportSettings(
            absolute(self.database.url),
            self._schema,
            self._catalog,
            self._queue_schemas,
            self._queue_catalogs,
            self.error_queue,
            self._endpoint,
            self._nginn,
            self._subscriptions_table,
        )

    @functools.cached_property
    def book(self) -> AddressBook:
        """Resolves addresses under this transport's defaults."""
        return AddressBook(
            self.database.dialect,
            self._schema,
            self._catalog or self.database.catalog,
            self._queue_schemas,
            self._queue_catalogs,
            self._nginn,
            self._subscriptions_table,
        )

    @functools.cached_property
    def nginn(self) -> NGinnQueues:
        """What only NGinn queues have: figures by subqueue, failed messages, subscriptions."""
        return NGinnQueues(self.database, self.book, self.sender)

    @functools.cached_property
    def sender(self) -> Sender:
        """Sends in transactions of the caller's."""
        return Sender(self.database, self.book, self._endpoint)

    @functools.cached_property
    def claims(self) -> Claims:
        """Claims, adopts, renews, completes, releases, splits and lists."""
        forwarder = Forwarder(self.database, self.book, self.sender, self.error_queue)
        return Claims(self.database, self.book, self.sender, forwarder, self.failures, self.outbox, self.nginn.incoming)

    @functools.cached_property
    def outbox(self) -> Outbox:
        """Results that lie ready until their claim is completed."""
        return Outbox(self.database, self.book, self.sender)

    @functools.cached_property
    def failures(self) -> FailureCounts:
        """Counts failed attempts in a row, by queue."""
        return FailureCounts(self.database, self.book)

    @functools.cached_property
    def claim_reader(self) -> ClaimReader:
        """Reads claims as Arrow record batches."""
        return ClaimReader(self.database, self.book)

    @functools.cached_property
    def delayed(self) -> DelayedMover:
        """Moves due messages."""
        forwarder = Forwarder(self.database, self.book, self.sender, self.error_queue)
        return DelayedMover(self.database, self.book, forwarder, self.nginn)

    @functools.cached_property
    def failed(self) -> FailedMessages:
        """What lies in error queues: lists, retries and discards it."""
        return FailedMessages(self.database, self.book, self.sender)

    @functools.cached_property
    def browser(self) -> Browser:
        """Reads messages in pages and leaves them where they are."""
        return Browser(self.database, self.book)

    @functools.cached_property
    def pauses(self) -> Pauses:
        """What operators have paused."""
        return Pauses(self.database, self.book)

    @functools.cached_property
    def slots(self) -> Slots:
        """Who is at work on which queue: the slots for batches, over all machines."""
        return Slots(self.database, self.book)

    @functools.cached_property
    def subscriptions(self) -> Subscriptions:
        """Who wants which events."""
        return Subscriptions(self.database, self.book)

    @functools.cached_property
    def user_tables(self) -> UserTables:
        """Writes rows to the user's own tables, in a transaction such as that of a completion."""
        return UserTables(self.database, self.book)

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
        return Installer(self.database, self.book).install(list(queues), plain, options or InstallOptions())

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
        """Send an event to all who subscribed to it; returns how many copies were written, 0 without a subscriber."""
        return Publisher(self.subscriptions, self.sender).publish(event, messages, self._joined(connection))

    def peek(self, queue: Queue, max_records_to_peek: int = DEFAULT_MAX_RECORDS_TO_PEEK) -> int:
        """How many messages wait, counted up to a limit."""
        return Peeker(self.database).peek(self.resolve(queue), max_records_to_peek)

    def show(self, queue: Queue, max_messages: int = 10) -> list[Shown]:
        """The oldest messages, left where they are."""
        return Peeker(self.database, self._nginn).show(self.resolve(queue), max_messages)

    def browse(self, queue: Queue, limit: int | None = DEFAULT_BROWSED) -> Browsed:
        """The oldest messages that wait, left where they are: as objects, as Arrow, as pandas. None: all of them."""
        return self.browser.browse(self.resolve(queue), limit)

    def browse_failed(
        self, queue: Queue | None = None, selection: Selection | None = None, limit: int | None = DEFAULT_BROWSED
    ) -> Browsed:
        """The same for messages that failed, with their reasons: those of an error queue, or of an NGinn queue."""
        return self.browser.browse_failed(self.resolve(queue or self.error_queue), selection, limit)

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
        receiver = Receiver(self.database, self.book, self.sender, self.claims, self.error_queue, self.nginn.receiver)
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
        reader = StatusReader(self.database, self.book, self.nginn)
        return [reader.status(self.resolve(queue)) for queue in queues or reader.queues()]

    def issued(self, queue: Queue) -> int | None:
        """The last number that a queue gave to a message, which counts arrivals; None where that is not known."""
        return StatusReader(self.database, self.book, self.nginn).issued(self.resolve(queue))

    def purge(
        self, queue: Queue, batch: int = DEFAULT_PURGE_BATCH, on_progress: Callable[[int], object] | None = None
    ) -> int:
        """Delete expired messages; returns how many."""
        return Purger(self.database, self.nginn).purge(self.resolve(queue), batch, on_progress)

    def audit_indexes(self, *queues: Queue) -> list[Finding]:
        """What is missing, outdated or bloated on the given queues, or on every queue in the default schema."""
        tables: Iterable[Queue] = queues or StatusReader(self.database, self.book, self.nginn).queues()
        auditor = IndexAuditor(self.database, self.book)
        return [finding for queue in tables for finding in auditor.audit(self.resolve(queue))]

    def warn_of_missing_indexes(self, queue: Queue) -> None:
        """Log missing indexes, once a process and queue; a check that fails is a warning too, never an error."""
        table = self.resolve(queue)
        key = (str(self.database), table.qualified)
        if key in _warned:
            return
        _warned.add(key)
        for finding in IndexAuditor(self.database, self.book).missing_indexes(table):
            logger.warning("%s", finding)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction in which the caller sends, together with statements of its own: SQLAlchemy's connection."""
        with self.database.transaction() as transaction, transaction.scope():
            yield transaction.connection

    def enlist(self, connection: Connection) -> Connection:
        """Check that queues can join the transaction of the caller's own connection, which the caller ends.

        Methods that take a connection do the same.
        """
        return self.database.enlist(connection).connection

    def _joined(self, connection: Connection | None) -> Transaction | None:
        return None if connection is None else self.database.enlist(connection)

    def close(self) -> None:
        """Close the idle connections; the transport can still be used and opens new ones."""
        self.database.close()

    def __enter__(self) -> QueueTransport:
        """Use as a context manager to close the connections at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the idle connections."""
        self.close()
