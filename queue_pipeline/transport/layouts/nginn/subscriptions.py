"""Publish and subscribe of NGinn.MessageBus: the table of subscriptions of publishers, and requests to them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from queue_pipeline.errors import AddressError, ConfigurationError, QueueNotFoundError, SubscriberError
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.nginn.endpoint import is_endpoint
from queue_pipeline.transport.layouts.nservicebus.subscriptions import KnownSubscribers
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.event import full_name
from queue_pipeline.transport.messages.message import Operation, OutgoingMessage, new_message
from queue_pipeline.transport.send import Sender

NAMESPACE: Final = "NGinnBPM.MessageBus.Messages"
ASSEMBLY: Final = "NGinnBPM.MessageBus"
EVERYTHING: Final = "System.Object"
"""The base of all types: an endpoint that subscribed to it gets everything."""
LONGEST_ENDPOINT = 200
LONGEST_TYPE = 300


def control_type(kind: str) -> str:
    """The type of a message from bus to bus."""
    return f"{NAMESPACE}.{kind}, {ASSEMBLY}"


def control_message(kind: str, sender: str, **members: object) -> OutgoingMessage:
    """A message for another bus, from this endpoint."""
    body = {"$type": control_type(kind), **{name: value for name, value in members.items() if value is not None}}
    return new_message(json.dumps(body, separators=(",", ":")), message_type=control_type(kind), reply_to=sender)


@dataclass(frozen=True, slots=True)
class NGinnSubscription:
    """A subscriber of a message type at a publisher; without an expiry it never ends."""

    publisher: str
    subscriber: str
    message_type: str
    expires_seconds: float | None


class NGinnSubscriptions:
    """Maintains the table, sends requests to publishers, and finds the subscribers of a message."""

    def __init__(self, database: Database, book: AddressBook, sender: Sender) -> None:
        self._database = database
        self._book = book
        self._sender = sender
        self._cache = KnownSubscribers()

    @property
    def table(self) -> QueueTable:
        """Where subscriptions are kept: its name differs between versions of NGinn.MessageBus, and is a setting."""
        return self._book.own(self._book.nginn.subscriptions_table)

    def require(self, transaction: Transaction, queue: QueueTable) -> None:
        """Check that the table exists, without a failing statement, which would end the transaction."""
        if not transaction.rows(self._database.dialect.statement("schema.exists", queue=self.table)):
            raise QueueNotFoundError(self.table.canonical, belongs_to=queue.canonical)

    def request(self, subscriber: str, message_type: str) -> OutgoingMessage:
        """What a subscriber asks its publisher for."""
        lifetime = timedelta(seconds=self._book.nginn.subscription_seconds)
        span = wire.format_time_span(lifetime)
        return control_message(
            "SubscribeRequest",
            subscriber,
            SubscriberEndpoint=subscriber,
            MessageType=message_type,
            SubscriptionTime=span,
        )

    def subscribe(self, publisher: str, subscriber: str, message_type: str) -> None:
        """Ask a publisher for a type of message; it is sent once the publisher has processed the request."""
        _check(publisher, subscriber, message_type)
        self._sender.send(publisher, self.request(subscriber, message_type))

    def unsubscribe(self, publisher: str, subscriber: str, message_type: str) -> bool:
        """End a subscription in the table, because the .NET publisher ignores requests; returns whether there was one.

        A publisher caches the table, and may send for up to an hour more.
        """
        _check(publisher, subscriber, message_type)
        removed = self._database.run(lambda own: self.remove(own, publisher, subscriber, message_type))
        return removed > 0

    def add(
        self, transaction: Transaction, publisher: str, subscriber: str, message_type: str, expires: timedelta | None
    ) -> None:
        """Keep a subscription, or hold it for longer."""
        _check(publisher, subscriber, message_type)
        seconds = -1 if expires is None else round(expires.total_seconds())
        values = {"publisher": publisher, "subscriber": subscriber, "message_type": message_type}
        transaction.execute(self._statement("subscription_add"), seconds=seconds, **values)
        self.forget(publisher)

    def remove(self, transaction: Transaction, publisher: str, subscriber: str, message_type: str) -> int:
        """Drop a subscription; returns how many there were."""
        command = self._statement("subscription_remove")
        self.forget(publisher)
        return transaction.count(command, publisher=publisher, subscriber=subscriber, message_type=message_type)

    def expire(self, transaction: Transaction, publisher: str, subscriber: str, message_type: str) -> int:
        """Drop a subscription that was not renewed in time; returns how many there were."""
        command = self._statement("subscription_expire")
        self.forget(publisher)
        return transaction.count(command, publisher=publisher, subscriber=subscriber, message_type=message_type)

    def is_wanted(self, transaction: Transaction, publisher: str, subscriber: str, message_type: str) -> bool:
        """Whether a subscription is to be renewed: it is still in the table, or its publisher keeps another one."""
        if not is_endpoint(publisher) or publisher.split("/")[2] not in self._book.nginn.aliases:
            return True
        kept = self._read(transaction, publisher)
        return any((one.subscriber, one.message_type) == (subscriber, message_type) for one in kept)

    def all(self, publisher: str | None = None) -> Sequence[NGinnSubscription]:
        """Every subscription, or those at one publisher; those whose time is over are still there until noticed."""
        return self._database.run(lambda own: self._read(own, publisher), write=False)

    def subscribers(self, publisher: str, message_type: str, parents: Iterable[str] = ()) -> tuple[str, ...]:
        """Who gets a message: each once, whichever of its types it subscribed to; known for a few seconds."""
        types = {message_type, *parents, EVERYTHING}
        return self._cache.get(frozenset({publisher, *types}), lambda: self._load(publisher, types))

    @contextlib.contextmanager
    def named(self, publisher: str, subscribers: Iterable[str]) -> Iterator[None]:
        """Report a missing queue of a subscriber as a SubscriberError that says how to end the subscription."""
        try:
            yield
        except QueueNotFoundError as error:
            if error.queue not in set(subscribers):
                raise
            self.forget(publisher)
            raise _unreachable(publisher, error.queue, str(error)) from error

    def publish(
        self,
        publisher: str,
        message_type: str,
        messages: OutgoingMessage | Sequence[OutgoingMessage],
        parents: Iterable[str] = (),
        transaction: Transaction | None = None,
    ) -> int:
        """Send a copy with an id of its own to each subscriber of the type or its parents; returns how many."""
        batch = [messages] if isinstance(messages, OutgoingMessage) else messages
        targets = self.subscribers(publisher, full_name(message_type), parents)
        operations = [Operation(target, _copy(message, publisher)) for message in batch for target in targets]
        with self.named(publisher, targets):
            return self._sender.dispatch(operations, transaction)

    def forget(self, publisher: str) -> None:
        """Read the subscriptions at a publisher again next time."""
        self._cache.forget([publisher])

    def _load(self, publisher: str, types: set[str]) -> tuple[str, ...]:
        found = [
            one.subscriber
            for one in self.all(publisher)
            if one.message_type in types and (one.expires_seconds is None or one.expires_seconds > 0)
        ]
        for subscriber in found:
            try:
                self._book.resolve(subscriber)
            except AddressError as error:
                raise _unreachable(publisher, subscriber, str(error)) from error
        return tuple(dict.fromkeys(found))

    def _read(self, transaction: Transaction, publisher: str | None) -> Sequence[NGinnSubscription]:
        rows = transaction.rows(self._statement("subscription_list"), publisher=publisher or "")
        return [
            NGinnSubscription(publisher, subscriber, message_type, None if seconds is None else float(seconds))
            for publisher, subscriber, message_type, seconds in rows
        ]

    def _statement(self, name: str) -> Command:
        return self._database.dialect.statement(f"nginn/bus.{name}", subscriptions=self.table)


def _unreachable(publisher: str, subscriber: str, why: str) -> SubscriberError:
    return SubscriberError(
        f"subscriber {subscriber} at {publisher} cannot be sent to, and nothing was published: {why}; if it is gone "
        f"for good: queue-pipeline nginn unsubscribe {publisher} {subscriber} TYPE"
    )


def _copy(message: OutgoingMessage, publisher: str) -> OutgoingMessage:
    fresh = wire.standard_headers(reply_to=publisher)[wire.MESSAGE_ID]
    headers = {**message.headers, wire.MESSAGE_ID: fresh, wire.REPLY_TO_ADDRESS: publisher}
    return OutgoingMessage(message.body, headers, message.time_to_be_received, message.delay)


def _check(publisher: str, subscriber: str, message_type: str) -> None:
    for what, value, longest in (
        ("publisher", publisher, LONGEST_ENDPOINT),
        ("subscriber", subscriber, LONGEST_ENDPOINT),
        ("message type", message_type, LONGEST_TYPE),
    ):
        if not value or len(value) > longest:
            raise ConfigurationError(
                f"subscription of {subscriber!r} to {message_type!r} at {publisher!r}: the {what} has {len(value)} "
                f"characters, and the table holds 1 to {longest}"
            )
        if what != "message type" and not is_endpoint(value):
            raise ConfigurationError(f"subscription: the {what} {value!r} is no endpoint; write sql://alias/Queue")
