"""Messages on their way elsewhere: delayed ones that a mover put into the wrong queue on purpose, and poison."""

from __future__ import annotations

from datetime import UTC, datetime

from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.addressing import AddressBook, QueueTable
from queue_pipeline.transport.database import Database, Transaction
from queue_pipeline.transport.errors import AddressError, QueueNotFoundError, QueuePipelineError
from queue_pipeline.transport.messages import Operation, OutgoingMessage, ReceivedMessage
from queue_pipeline.transport.send import Sender

LONGEST_EXCEPTION_MESSAGE = 16_384


class Forwarder:
    """Sends messages on to where their forwarding header says, and unreadable rows to the error queue."""

    def __init__(self, database: Database, book: AddressBook, sender: Sender, error_queue: str) -> None:
        self._database = database
        self._book = book
        self._sender = sender
        self._error_queue = error_queue

    def forward(self, transaction: Transaction, own: QueueTable, message: ReceivedMessage) -> bool:
        """Send a message on if it is not for this queue; its forwarding header is gone either way.

        A destination that does not exist sends the message to the error queue, where FailedQ is that destination.
        """
        destination = message.headers.pop(wire.FORWARD_DESTINATION, None)
        if destination is None or destination == own.canonical:
            return False
        try:
            table = self._book.resolve(destination)
            if table == own:
                return False
            if not transaction.rows(self._database.dialect.statement("table_exists", queue=table)):
                raise QueueNotFoundError(destination)
        except (AddressError, QueueNotFoundError) as error:
            self._fail(transaction, destination, message, error)
        else:
            copy = OutgoingMessage(message.body, message.headers)
            self._sender.dispatch([Operation(table, copy)], transaction)
        return True

    def dead_letter(self, transaction: Transaction, row_id: str, header_text: str | None, body: bytes | None) -> None:
        """Put a row into the error queue byte for byte: what cannot be read must not be changed."""
        dialect = self._database.dialect
        queue = self._book.resolve(self._error_queue)
        names = dialect.optional_columns(self._database.shapes.columns(transaction, queue))
        command = dialect.statement(f"{queue.layout}/dead_letter", queue=queue, **names)
        missing = 1 if body is None else 0
        transaction.execute(command, (row_id, row_id, header_text or "", missing, bytes(body or b"")))

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
