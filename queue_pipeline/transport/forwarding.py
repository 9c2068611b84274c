"""Messages on their way elsewhere: delayed ones that a mover put into the wrong queue on purpose, and poison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.addressing import AddressBook, QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.errors import AddressError, QueueNotFoundError, QueuePipelineError
from queue_pipeline.transport.messages import Operation, OutgoingMessage, ReceivedMessage
from queue_pipeline.transport.send import Sender, Shipment

LONGEST_EXCEPTION_MESSAGE = 16_384


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

    def forward(self, transaction: Transaction, own: QueueTable, message: ReceivedMessage) -> bool:
        """Send a message on if it is not for this queue; its forwarding header is gone either way."""
        return self.forward_all(transaction, own, [message]) == 1

    def forward_all(self, transaction: Transaction, own: QueueTable, messages: Iterable[ReceivedMessage]) -> int:
        """Send on those messages that are not for this queue, in their order; returns how many.

        A destination that does not exist sends a message to the error queue, where FailedQ is that destination.
        """
        tables: dict[str, QueueTable | QueuePipelineError] = {}
        shipments: dict[QueueTable, Shipment] = {}
        forwarded = 0
        for message in messages:
            destination = self.destination(own, message.headers)
            message.headers.pop(wire.FORWARD_DESTINATION, None)
            if destination is None:
                continue
            forwarded += 1
            table = tables.get(destination) or self._find(transaction, destination)
            tables[destination] = table
            if isinstance(table, QueuePipelineError):
                self._fail(transaction, destination, message, table)
            else:
                # Not through dispatch, which would take two messages of the same id for one.
                shipment = shipments.setdefault(table, Shipment(table, None, []))
                shipment.messages.append(OutgoingMessage(message.body, message.headers))
        self._sender.write(transaction, list(shipments.values()))
        return forwarded

    def dead_letter(self, transaction: Transaction, row_id: str, header_text: str | None, body: bytes | None) -> None:
        """Put a row into the error queue byte for byte: what cannot be read must not be changed."""
        dialect = self._database.dialect
        queue = self._book.resolve(self._error_queue)
        names = dialect.optional_columns(self._database.shapes.columns(transaction, queue))
        command = dialect.statement(f"{queue.layout}/queue.dead_letter", queue=queue, **names)
        values = {"id": row_id, "headers": header_text or "", "body": bytes(body or b"")}
        transaction.execute(command, body_is_null=1 if body is None else 0, **values)

    def _find(self, transaction: Transaction, destination: str) -> QueueTable | QueuePipelineError:
        """The table of a destination, or what is wrong with it."""
        try:
            table = self._book.resolve(destination)
        except AddressError as error:
            return error
        exists = transaction.rows(self._database.dialect.statement("schema.exists", queue=table))
        return table if exists else QueueNotFoundError(destination)

    def _fail(
        self, transaction: Transaction, destination: str, message: ReceivedMessage, error: QueuePipelineError
    ) -> None:
        kind = f"{type(error).__module__}.{type(error).__name__}"
        failure = {
            wire.FAILED_QUEUE: destination,
            wire.EXCEPTION_TYPE: kind,
            wire.EXCEPTION_MESSAGE: str(error)[:LONGEST_EXCEPTION_MESSAGE],
            wire.EXCEPTION_STACK_TRACE: f"{kind}: {error}",
            wire.TIME_OF_FAILURE: wire.format_timestamp(datetime.now(UTC)),
        }
        copy = OutgoingMessage(message.body, {**message.headers, **failure})
        self._sender.dispatch([Operation(self._error_queue, copy)], transaction)
