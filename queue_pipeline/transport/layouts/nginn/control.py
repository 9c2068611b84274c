"""Control messages between buses: subscribe, renew, expire and ping, which every endpoint answers itself."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from queue_pipeline.errors import AddressError, QueueNotFoundError, QueuePipelineError
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.nginn.endpoint import is_endpoint
from queue_pipeline.transport.layouts.nginn.rows import StoredRow
from queue_pipeline.transport.layouts.nginn.settings import LONGEST_WAIT
from queue_pipeline.transport.layouts.nginn.subscriptions import NGinnSubscriptions, control_message, control_type
from queue_pipeline.transport.layouts.nginn.text import type_of
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import OutgoingMessage
from queue_pipeline.transport.send import Sender

KINDS: Final = ("SubscribeRequest", "UnsubscribeRequest", "SubscriptionExpiring", "SubscriptionTimeout", "Ping")
CONTROL_TYPES: Final = {control_type(kind): kind for kind in KINDS}

logger = logging.getLogger(__name__)


class ControlMessages:
    """Handles control messages in the transaction that takes them."""

    def __init__(self, book: AddressBook, sender: Sender, subscriptions: NGinnSubscriptions) -> None:
        self._book = book
        self._sender = sender
        self._subscriptions = subscriptions

    def handle(self, transaction: Transaction, queue: QueueTable, row: StoredRow) -> str | None:
        """Handle one message; returns what is wrong with it, if it cannot be handled."""
        try:
            body = json.loads(row.text or "")
            kind = CONTROL_TYPES[type_of(row.text) or ""]
            if kind != "Ping":
                self._subscriptions.require(transaction, queue)
            getattr(self, f"_{kind}")(transaction, queue, row, body)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            return f"{type(error).__name__}: {error}"
        except QueuePipelineError as error:
            if transaction.doomed:
                raise
            return str(error)
        return None

    def _SubscribeRequest(self, transaction: Transaction, queue: QueueTable, row: StoredRow, body: Any) -> None:
        """Store a subscription; one with a lifetime also gets delayed messages for its renewal and its end."""
        subscriber, message_type = body.get("SubscriberEndpoint") or row.from_endpoint, str(body["MessageType"])
        lifetime = wire.parse_time_span(str(body.get("SubscriptionTime") or "00:00:00"))
        if lifetime > timedelta(seconds=LONGEST_WAIT):
            raise ValueError(f"a subscription for {lifetime} is longer than ten years; ask for 0, which is for ever")
        # Before it is kept: a message for an endpoint that cannot be sent anything would fail for all subscribers.
        self._reach(transaction, subscriber)
        if lifetime <= timedelta(0):
            self._subscriptions.add(transaction, queue.canonical, subscriber, message_type, None)
            return
        expires = 2 * lifetime + timedelta(minutes=1)
        self._subscriptions.add(transaction, queue.canonical, subscriber, message_type, expires)
        expiring = control_message("SubscriptionExpiring", queue.canonical, MessageType=message_type)
        self._send(transaction, queue, subscriber, expiring, lifetime)
        moment = (datetime.now(UTC) + expires).strftime("%Y-%m-%dT%H:%M:%SZ")
        over = control_message(
            "SubscriptionTimeout", queue.canonical, Subscriber=subscriber, MessageType=message_type, Expiration=moment
        )
        self._send(transaction, queue, queue.canonical, over, expires)

    def _UnsubscribeRequest(self, transaction: Transaction, queue: QueueTable, row: StoredRow, body: Any) -> None:
        subscriber = body.get("SubscriberEndpoint") or row.from_endpoint
        self._subscriptions.remove(transaction, queue.canonical, subscriber, str(body["MessageType"]))

    def _SubscriptionExpiring(self, transaction: Transaction, queue: QueueTable, row: StoredRow, body: Any) -> None:
        """Ask for more time, if the subscription is still wanted."""
        message_type = str(body["MessageType"])
        if self._subscriptions.is_wanted(transaction, row.from_endpoint, queue.canonical, message_type):
            request = self._subscriptions.request(queue.canonical, message_type)
            self._send(transaction, queue, row.from_endpoint, request)

    def _SubscriptionTimeout(self, transaction: Transaction, queue: QueueTable, row: StoredRow, body: Any) -> None:
        self._subscriptions.expire(transaction, queue.canonical, str(body["Subscriber"]), str(body["MessageType"]))

    def _Ping(self, transaction: Transaction, queue: QueueTable, row: StoredRow, body: Any) -> None:
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        pong = control_message(
            "Pong", queue.canonical, Id=body.get("Id"), PingSentDate=body.get("SentDate"), SentDate=moment
        )
        self._send(transaction, queue, row.from_endpoint, pong)

    def _send(
        self,
        transaction: Transaction,
        queue: QueueTable,
        endpoint: str,
        message: OutgoingMessage,
        delay: timedelta | None = None,
    ) -> None:
        """Send to another bus in this database; one that is elsewhere is logged."""
        try:
            table = self._reach(transaction, endpoint)
        except (AddressError, QueueNotFoundError) as error:
            logger.warning("%s: %s cannot be reached from here; it gets no answer: %s", queue, endpoint, error)
            return
        later = OutgoingMessage(message.body, message.headers, None, delay)
        self._sender.send(table, later, transaction)

    def _reach(self, transaction: Transaction, endpoint: str) -> QueueTable:
        """The table of another bus, checked before it is written to: an error would end the transaction."""
        if not is_endpoint(endpoint):
            raise AddressError(f"{endpoint!r} is no endpoint in this database; only sql://alias/Queue can be reached")
        table = self._book.resolve(endpoint)
        if not transaction.rows(self._book.dialect.statement("schema.exists", queue=table)):
            raise QueueNotFoundError(endpoint)
        return table
