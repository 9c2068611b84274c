"""Moves failed messages from an error queue to where they came from, a batch in a transaction, all of it or none."""

from __future__ import annotations

import contextlib
import functools
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from queue_pipeline.errors import (
    AccessDeniedError,
    AddressError,
    ConfigurationError,
    DatabaseError,
    QueueNotFoundError,
    QueuePipelineError,
    TransientDatabaseError,
)
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.inspection.browsed import BrowsedMessage
from queue_pipeline.transport.layouts.nservicebus.forwarding import Forwarder, take_rows
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import OutgoingMessage, from_row
from queue_pipeline.transport.send import Sender, shipment_of

_LOST_PREFIXES = (wire.RETRIES, wire.EXCEPTION_PREFIX)
_LOST = frozenset(
    {
        wire.FAILED_QUEUE,
        wire.TIME_OF_FAILURE,
        wire.FIRST_LEVEL_RETRIES,
        wire.FORWARD_DESTINATION,
        wire.EDIT_OF,
        wire.PROCESSING_ENDPOINT,
        wire.PROCESSING_MACHINE,
        wire.HOST_ID,
        wire.HOST_DISPLAY_NAME,
    }
)
MOST_NAMED = 1_000
"""Up to this many messages that stay behind are named one by one; the others are only counted."""
OTHERWISE = "give another destination with --to"


@dataclass(frozen=True, slots=True)
class NotReturned:
    """A message that stays in the error queue, and why."""

    id: str
    message_id: str
    failed_queue: str | None
    reason: str


@dataclass
class Retried:
    """What became of the chosen messages."""

    queues: Counter[str] = field(default_factory=Counter)
    """Messages that went back, by queue."""
    held: int = 0
    """Messages that another process holds, or took in the meantime."""
    skipped: int = 0
    """Messages that cannot go back, and stay."""
    named: list[NotReturned] = field(default_factory=list)
    """The first of those that were skipped."""

    @property
    def returned(self) -> int:
        """How many messages went back."""
        return self.queues.total()

    @property
    def done(self) -> int:
        """How many messages were dealt with."""
        return self.returned + self.held + self.skipped


class RefusedError(QueuePipelineError):
    """A queue does not take messages, for a reason that has nothing to do with other queues."""

    def __init__(self, table: QueueTable, error: QueuePipelineError) -> None:
        self.table = table
        super().__init__(str(error))


class Routes:
    """Where failed messages go, and why some of them can go nowhere; a queue is looked for once."""

    def __init__(self, database: Database, book: AddressBook, error_queue: QueueTable, to: QueueTable | None) -> None:
        self._database = database
        self._book = book
        self._error_queue = error_queue
        self._to = to
        self._reasons: dict[QueueTable, str] = {}
        if to == error_queue:
            raise ConfigurationError(f"queue {to}: that is where the failed messages are; name another destination")
        if to is not None and not self._exists(to):
            raise QueueNotFoundError(to.canonical)

    def route(self, message: BrowsedMessage) -> tuple[QueueTable | None, str]:
        """The table that a message goes to; None and the reason when there is none."""
        if self._to is not None:
            return self._answer(self._to)
        if message.problem is not None:
            words = f"its headers cannot be read ({message.problem}), so that it would fail again at once"
            return None, f"{words}; look at it, then name a destination with --to"
        if message.failed_queue is None:
            return None, "no header says in which queue it failed; name a destination with --to"
        try:
            table = self._book.resolve(message.failed_queue)
        except AddressError as error:
            return None, f"{error}; {OTHERWISE}"
        return self._answer(table)

    def refuse(self, error: RefusedError) -> None:
        """Leave what goes to this queue where it is, from now on."""
        self._reasons[error.table] = f"{error}; {OTHERWISE}"

    def _answer(self, table: QueueTable) -> tuple[QueueTable | None, str]:
        if table not in self._reasons:
            self._reasons[table] = self._reason(table)
        reason = self._reasons[table]
        return (None, reason) if reason else (table, "")

    def _reason(self, table: QueueTable) -> str:
        if table == self._error_queue:
            return f"it failed in the error queue itself; {OTHERWISE}"
        try:
            with refusals(table):
                exists = self._exists(table)
        except RefusedError as error:
            return f"{error}; {OTHERWISE}"
        if not exists:
            # A name from a message ends in a command that people paste into a shell.
            step = f"queue-pipeline install {shlex.quote(table.canonical)}"
            return f"queue {table} does not exist; create it with: {step}, or {OTHERWISE}"
        return ""

    def _exists(self, table: QueueTable) -> bool:
        command = self._database.dialect.statement("schema.exists", queue=table)
        return bool(self._database.rows(command))


class Returner:
    """Takes failed messages and sends them on, in one transaction a batch."""

    def __init__(self, database: Database, book: AddressBook, sender: Sender, error_queue: QueueTable) -> None:
        self._database = database
        self._book = book
        self._sender = sender
        self._error_queue = error_queue

    def move(self, messages: Sequence[BrowsedMessage], routes: Routes, result: Retried) -> None:
        """One batch; when a queue takes nothing, the batch is undone, and done again without what goes there."""
        while True:
            going: dict[int, QueueTable] = {}
            staying: list[NotReturned] = []
            for message in messages:
                table, reason = routes.route(message)
                if table is None:
                    staying.append(NotReturned(message.id, message.message_id, message.failed_queue, reason))
                else:
                    going[message.row_version] = table
            try:
                returned = self._database.run(functools.partial(self._send, going=going))
            except RefusedError as error:
                routes.refuse(error)
                continue
            result.queues.update(returned)
            result.held += len(going) - returned.total()
            result.skipped += len(staying)
            result.named += staying[: max(0, MOST_NAMED - len(result.named))]
            return

    def _send(self, transaction: Transaction, going: dict[int, QueueTable]) -> Counter[str]:
        messages: dict[QueueTable, list[OutgoingMessage]] = {}
        returned: Counter[str] = Counter()
        for row in take_rows(self._database, transaction, self._error_queue, [*going]):
            table = going[int(row[1])]
            returned[table.canonical] += 1
            try:
                message = from_row(*row)
            except ValueError:
                with refusals(table):
                    raw = Forwarder(self._database, self._book, self._sender, table.canonical)
                    raw.dead_letter(transaction, str(row[0]), row[2], row[3])
            else:
                copy = OutgoingMessage(message.body, without_failure(message.headers))
                messages.setdefault(table, []).append(copy)
        for table, copies in messages.items():
            with refusals(table):
                # Not by `dispatch`: of messages with the same id it sends one, and here each of them failed.
                self._sender.write(transaction, [shipment_of(table, copies)])
        return returned


def without_failure(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers as they were before the failure; those by which ServiceControl follows its retries stay."""
    return {name: value for name, value in headers.items() if name not in _LOST and not name.startswith(_LOST_PREFIXES)}


@contextlib.contextmanager
def refusals(table: QueueTable) -> Iterator[None]:
    """Raise a RefusedError if this queue takes no message: it is missing, forbidden, or no queue."""
    try:
        yield
    except TransientDatabaseError:
        raise
    except (QueueNotFoundError, AccessDeniedError, DatabaseError) as error:
        raise RefusedError(table, error) from error
