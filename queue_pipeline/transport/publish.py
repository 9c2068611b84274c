"""Publish: one copy of an event per subscriber."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.errors import InvalidMessageError
from queue_pipeline.transport.layouts.nservicebus.subscriptions import Subscriptions
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.event import Event, event_of
from queue_pipeline.transport.messages.message import Operation, OutgoingMessage
from queue_pipeline.transport.send import Sender

INTENT = "Publish"
NO_DELAY = "an event cannot be delayed; send a delayed message to yourself, and publish when it arrives"


class Publisher:
    """Turns a publication into sends."""

    def __init__(self, subscriptions: Subscriptions, sender: Sender) -> None:
        self._subscriptions = subscriptions
        self._sender = sender

    def publish(
        self,
        event: Event | str,
        messages: OutgoingMessage | Iterable[OutgoingMessage],
        transaction: Transaction | None = None,
    ) -> int:
        """Write a copy for each subscriber; returns how many. Subscribers are read outside of it, and cached."""
        declared = event_of(event)
        batch = [messages] if isinstance(messages, OutgoingMessage) else list(messages)
        published = [_published(declared, message) for message in batch]
        subscribers = self._subscriptions.subscribers(declared.topics)
        operations = [Operation(subscriber, message) for subscriber in subscribers for message in published]
        with self._subscriptions.named(declared.topics, subscribers):
            return self._sender.dispatch(operations, transaction)


def _published(event: Event, message: OutgoingMessage) -> OutgoingMessage:
    if message.delay is not None:
        raise InvalidMessageError(f"event {event.name}: {NO_DELAY}")
    types = {wire.MESSAGE_INTENT: INTENT, wire.ENCLOSED_MESSAGE_TYPES: event.enclosed_types}
    return replace(message, headers={**message.headers, **types})
