"""Receiving from queues of the NServiceBus SQL transport in an open transaction: messages are deleted."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.layout import Intake
from queue_pipeline.transport.layouts.nservicebus.forwarding import Forwarder
from queue_pipeline.transport.layouts.refused_rows import Leaving
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import ReceivedMessage, from_row
from queue_pipeline.transport.texts import Refusal, few_of_each

logger = logging.getLogger(__name__)


class NServiceBusReceiver:
    """Takes messages off a queue; what is no message for this queue is dealt with."""

    def __init__(self, database: Database, forwarder: Forwarder) -> None:
        self._database = database
        self._forwarder = forwarder

    def take(self, transaction: Transaction, queue: QueueTable, max_messages: int, leaving: Leaving) -> Intake:
        """The oldest rows: unreadable ones go to the error queue, those for another queue there."""
        command = self._database.shapes.statement(transaction, "nservicebus/queue.receive", queue, "deleted")
        messages: list[ReceivedMessage] = []
        expired = forwarded = poisoned = 0
        while not messages and (rows := transaction.rows(command, limit=max_messages)):
            elsewhere: list[ReceivedMessage] = []
            poison: list[Refusal] = []
            for row in sorted(rows, key=lambda row: row[1]):
                message = self._readable(transaction, row, poison)
                if message is None:
                    continue
                if row[2]:
                    expired += 1
                elif self._forwarder.destination(queue, message.headers) is not None:
                    elsewhere.append(message)
                else:
                    message.headers.pop(wire.FORWARD_DESTINATION, None)
                    messages.append(message)
            poisoned += len(poison)
            for line in few_of_each(poison):
                logger.error("queue %s: moved to the error queue unchanged: %s", queue, line)
            leaving += [message.row_version for message in elsewhere]
            forwarded += self._forwarder.forward_all(transaction, queue, elsewhere)
        return Intake(messages, expired, forwarded, poisoned)

    def attempts(self, queue: QueueTable, messages: list[ReceivedMessage]) -> contextlib.AbstractContextManager[None]:
        """Nothing to count: rows of these queues hold no number of attempts."""
        return contextlib.nullcontext()

    def _readable(self, transaction: Transaction, row: Any, poison: list[Refusal]) -> ReceivedMessage | None:
        row_id, row_version, _, header_text, body, correlation_id, reply_to = row
        try:
            return from_row(row_id, row_version, header_text, body, correlation_id, reply_to)
        except ValueError as error:
            self._forwarder.dead_letter(transaction, str(row_id), header_text, body)
            poison.append(Refusal(str(row_id), "unreadable headers", str(error)))
            return None
