"""Messages on their way elsewhere: delayed ones that a mover put into the wrong queue on purpose, and poison."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from queue_pipeline.errors import (
    AddressError,
    QueueNotFoundError,
    QueuePipelineError,
)
from queue_pipeline.transport.addresses.queues import AddressBook, ClaimTables, QueueTable
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.statements import numbered_values
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.failed.error_message import Failure, failure_headers
from queue_pipeline.transport.failed.stack_frames import frame_of, trace_at
from queue_pipeline.transport.layouts.refused_rows import is_refusal
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import Operation, OutgoingMessage, ReceivedMessage, from_row
from queue_pipeline.transport.send import Sender, shipment_of
from queue_pipeline.transport.texts import Refusal, few_of_each

ROWS_PER_STATEMENT = 500
"""Few enough that a statement stays under 4,000 characters on SQL Server."""

Take: TypeAlias = Callable[[Transaction, Sequence[Any]], list[ReceivedMessage]]
"""Takes messages out of a table by their keys, those that another process took meanwhile excepted."""

logger = logging.getLogger(__name__)


class Forwarder:
    """Sends messages on to where their forwarding header says, and unreadable rows to the error queue."""

    def __init__(self, database: Database, book: AddressBook, sender: Sender, error_queue: str) -> None:
        self._database = database
        self._book = book
        self._sender = sender
        self._error_queue = error_queue

    def destination(self, own: QueueTable, headers: Mapping[str, str]) -> str | None:
        """Where a message with these headers has to go on to; None when it is for this queue."""
        destination = headers.get(wire.FORWARD_DESTINATION)
        if destination is None or destination == own.canonical:
            return None
        try:
            return None if self._book.resolve(destination) == own else destination
        except AddressError:
            return destination

    def forward_all(self, transaction: Transaction, own: QueueTable, messages: Iterable[ReceivedMessage]) -> int:
        """Forward messages that are for other queues, in their order; returns how many.

        If a destination does not exist, its messages go to the error queue; one that refuses fails the transaction, see
        `send_on`.
        """
        tables: dict[str, QueueTable | QueuePipelineError] = {}
        copies: dict[QueueTable, list[OutgoingMessage]] = {}
        forwarded = 0
        for message in messages:
            destination = self.destination(own, message.headers) or own.canonical
            message.headers.pop(wire.FORWARD_DESTINATION, None)
            forwarded += 1
            table = tables.get(destination) or self._find(transaction, destination)
            tables[destination] = table
            if isinstance(table, QueuePipelineError):
                self._fail(transaction, destination, message, table)
            else:
                # Not through dispatch, which would take two messages of the same id for one.
                copies.setdefault(table, []).append(OutgoingMessage(message.body, message.headers))
        self._sender.write(transaction, [shipment_of(table, messages) for table, messages in copies.items()])
        return forwarded

    def send_on(self, own: QueueTable, keys: Sequence[Any], take: Take) -> int:
        """Forward messages one transaction each, after a refusal; a message refused alone goes to the error queue."""
        refused: list[Refusal] = []
        try:
            return self._send_on(own, keys, take, refused)
        finally:
            for line in few_of_each(refused):
                logger.error("%s: not taken by their destination and moved to %s: %s", own, self._error_queue, line)

    def _send_on(self, own: QueueTable, keys: Sequence[Any], take: Take, refused: list[Refusal]) -> int:
        try:
            return self._database.run(lambda transaction: self.forward_all(transaction, own, take(transaction, keys)))
        except QueuePipelineError as error:
            if not is_refusal(error):
                raise
            refusal = error
        if len(keys) > 1:
            return sum(self._send_on(own, [key], take, refused) for key in keys)
        failed = self._database.run(
            lambda transaction: self._refuse(transaction, own, take(transaction, keys), refusal)
        )
        refused += [Refusal(message.message_id, type(refusal).__name__, str(refusal)) for message in failed]
        return len(failed)

    def from_queue(self, queue: QueueTable) -> Take:
        """Takes messages out of a queue by their row versions."""

        def take(transaction: Transaction, row_versions: Sequence[int]) -> list[ReceivedMessage]:
            return [from_row(*row) for row in take_rows(self._database, transaction, queue, row_versions)]

        return take

    def dead_letter(self, transaction: Transaction, row_id: str, header_text: str | None, body: bytes | None) -> None:
        """Put a row into the error queue byte for byte: what cannot be read must not be changed."""
        dialect = self._database.dialect
        queue = self._book.resolve(self._error_queue)
        command = self._database.shapes.statement(transaction, "nservicebus/queue.dead_letter", queue)
        values = {"id": row_id, "headers": dialect.as_read(header_text or ""), "body": bytes(body or b"")}
        transaction.execute(command, body_is_null=1 if body is None else 0, **values)

    def dead_letter_claimed(
        self, transaction: Transaction, tables: ClaimTables, claim: Claim, row_version: int
    ) -> None:
        """Have the database copy a claimed row into the error queue: it need not be readable here, however large."""
        shapes, queue = self._database.shapes, self._book.resolve(self._error_queue)
        command = shapes.statement(transaction, "nservicebus/claim_messages.dead_letter", queue, claimed=tables.claimed)
        transaction.execute(command, claim_id=claim.claim_id, row_version=row_version)

    def _find(self, transaction: Transaction, destination: str) -> QueueTable | QueuePipelineError:
        try:
            table = self._book.resolve(destination)
        except AddressError as error:
            return error
        exists = transaction.rows(self._database.dialect.statement("schema.exists", queue=table))
        return table if exists else QueueNotFoundError(destination)

    def _refuse(
        self,
        transaction: Transaction,
        own: QueueTable,
        messages: Sequence[ReceivedMessage],
        refusal: QueuePipelineError,
    ) -> Sequence[ReceivedMessage]:
        for message in messages:
            destination = self.destination(own, message.headers) or own.canonical
            message.headers.pop(wire.FORWARD_DESTINATION, None)
            self._fail(transaction, destination, message, refusal)
        return messages

    def _fail(
        self, transaction: Transaction, destination: str, message: ReceivedMessage, error: QueuePipelineError
    ) -> None:
        kind = f"{type(error).__module__}.{type(error).__name__}"
        failure = Failure(kind, str(error), trace_at(kind, str(error), [frame_of(Forwarder.forward_all)]))
        copy = OutgoingMessage(message.body, {**message.headers, **failure_headers(failure, destination)})
        self._sender.dispatch([Operation(self._error_queue, copy)], transaction)


def take_rows(
    database: Database, transaction: Transaction, queue: QueueTable, row_versions: Sequence[int]
) -> list[Any]:
    """Take rows out of a queue by their row versions, in order, except for those that another process holds."""
    take = database.shapes.statement(transaction, "nservicebus/failed.take", queue, "deleted")
    taken = [
        row
        for part in parts(row_versions)
        for row in transaction.rows(take.repeated(len(part)), **numbered_values("row_version", part))
    ]
    return sorted(taken, key=lambda row: row[1])


def parts(keys: Sequence[Any], most: int = ROWS_PER_STATEMENT) -> Iterator[Sequence[Any]]:
    """The keys of rows, as many as one statement takes."""
    for first in range(0, len(keys), most):
        yield keys[first : first + most]
