"""Subscriptions: who wants which events, kept in one table that all endpoints share, .NET ones included."""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from queue_pipeline.errors import (
    AddressError,
    ConfigurationError,
    QueueNotFoundError,
    SubscriberError,
    TableNotFoundError,
)
from queue_pipeline.transport.addresses.address import QueueAddress, check_name
from queue_pipeline.transport.addresses.queues import NSERVICEBUS, AddressBook, QueueTable
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.statements import numbered_values
from queue_pipeline.transport.database.transaction import Transaction, repeated_if_added
from queue_pipeline.transport.messages.event import check_width, full_name

CACHE_SECONDS = 5.0
"""How long an answer to "who subscribed?" is used again: a new subscriber may miss the events of that time."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """An endpoint that wants the events of a topic, and the address of the queue that they go to."""

    endpoint: str
    topic: str
    queue: str


class KnownSubscribers:
    """Addresses by the topics that were asked for, known for a few seconds; safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[frozenset[str], tuple[float, tuple[str, ...]]] = {}
        self._changes = 0

    def get(self, topics: frozenset[str], load: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """The addresses, known or loaded; an error of `load` is not remembered."""
        with self._lock:
            known, changes = self._known.get(topics), self._changes
        if known is not None and self._clock() < known[0]:
            return known[1]
        found = load()
        with self._lock:
            # Not if something changed meanwhile: the answer may be from before.
            if changes == self._changes:
                self._known[topics] = (self._clock() + CACHE_SECONDS, found)
        return found

    def forget(self, topics: Iterable[str]) -> None:
        """Drop what is known of these topics."""
        changed = set(topics)
        with self._lock:
            self._changes += 1
            self._known = {known: value for known, value in self._known.items() if not known & changed}


class Subscriptions:
    """Subscribe, unsubscribe, list and find subscribers; each on a connection of its own, committed at once."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book
        self._cache = KnownSubscribers()

    @property
    def table(self) -> QueueTable:
        """Where subscriptions are kept; endpoints with another table see none of these events."""
        return self._book.subscriptions

    def subscribe(self, endpoint: str, topic: str, queue: str | QueueAddress | QueueTable | None = None) -> bool:
        """Have events of a topic sent to an endpoint's queue, by default the one of its name; False if that was so.

        An endpoint that subscribed with another address moves to this one.
        """
        # The name of an endpoint is no address: a dot in it separates nothing.
        table = self._book.resolve(QueueAddress(endpoint) if queue is None else queue)
        if table.layout != NSERVICEBUS:
            raise ConfigurationError(
                f"{table} is an NGinn queue, to which NServiceBus publishers cannot send; subscribe it at an "
                "NGinn publisher with: queue-pipeline nginn subscribe"
            )
        address = table.canonical
        check_endpoint(endpoint)
        check_width("address", address)
        name = full_name(topic)
        command = self._statement("add")

        @repeated_if_added()
        def write(transaction: Transaction) -> int:
            return transaction.count(command, address=address, endpoint=endpoint, topic=name)

        try:
            with self._table_named():
                return self._database.run(write) > 0
        finally:
            self._cache.forget([name])

    def unsubscribe(self, endpoint: str, topic: str) -> bool:
        """End a subscription; False when there was none."""
        check_endpoint(endpoint)
        name = full_name(topic)
        command = self._statement("remove")
        try:
            with self._table_named():
                return self._database.count(command, endpoint=endpoint, topic=name) > 0
        finally:
            self._cache.forget([name])

    def list(self, topic: str | None = None) -> Sequence[Subscription]:
        """All subscriptions, or those of one topic."""
        command = self._statement("list")
        with self._table_named():
            rows = self._database.rows(command)
        wanted = None if topic is None else full_name(topic)
        return [Subscription(*map(str, row)) for row in rows if wanted is None or row[1] == wanted]

    def subscribers(self, topics: Iterable[str]) -> tuple[str, ...]:
        """The addresses of all who want an event of these topics, each once; known for a few seconds."""
        wanted = frozenset(topics)
        return self._cache.get(wanted, lambda: self._load(sorted(wanted)))

    @contextlib.contextmanager
    def named(self, topics: Iterable[str], subscribers: Iterable[str]) -> Iterator[None]:
        """Raise a SubscriberError if a subscriber's queue is missing: it says whose it is, and how to end that."""
        try:
            yield
        except QueueNotFoundError as error:
            if error.queue not in set(subscribers):
                raise
            # It may have unsubscribed before its queue was removed: the next try asks the database.
            wanted = set(topics)
            self._cache.forget(wanted)
            theirs = [one for one in self._wanting(wanted) if self._is_at(one, error.queue)]
            raise _unreachable(error.queue, theirs, str(error)) from error

    def _load(self, topics: Sequence[str]) -> tuple[str, ...]:
        command, values = self._statement("subscribers").repeated(len(topics)), numbered_values("topic", topics)
        with self._table_named():
            rows = self._database.rows(command, **values)
        return tuple(dict.fromkeys(self._address(str(row[0]), topics) for row in rows))

    def _address(self, stored: str, topics: Sequence[str]) -> str:
        """A stored address as this transport writes it, so that two ways of writing one are one subscriber."""
        try:
            return self._book.resolve(stored).canonical
        except AddressError as error:
            theirs = [one for one in self._wanting(topics) if one.queue == stored]
            raise _unreachable(stored, theirs, str(error)) from error

    def _wanting(self, topics: Iterable[str]) -> Sequence[Subscription]:
        """The subscriptions of these topics; SQL Server usually takes no notice of upper and lower case."""
        wanted = {topic.casefold() for topic in topics}
        return [one for one in self.list() if one.topic.casefold() in wanted]

    def _is_at(self, subscription: Subscription, canonical: str) -> bool:
        try:
            return self._book.resolve(subscription.queue).canonical == canonical
        except AddressError:
            return False

    @contextlib.contextmanager
    def _table_named(self) -> Iterator[None]:
        try:
            yield
        except TableNotFoundError as error:
            raise TableNotFoundError(
                f"the table of subscriptions, {self.table}, does not exist; create it with: queue-pipeline install "
                f"QUEUE, or name the one that the other endpoints use ({error})"
            ) from error

    def _statement(self, name: str) -> Command:
        return self._database.dialect.statement(f"subscriptions.{name}", subscriptions=self.table)


def check_endpoint(endpoint: str) -> None:
    """Refuse what no endpoint is called."""
    if not endpoint.strip():
        raise ConfigurationError("the name of an endpoint is empty; give the one that it has in NServiceBus")
    check_name(endpoint)
    check_width("endpoint", endpoint)


def _unreachable(address: str, theirs: Sequence[Subscription], why: str) -> SubscriberError:
    if not theirs:
        return SubscriberError(f"subscriber {address} has unsubscribed meanwhile; nothing was published, try again")
    steps = " ; ".join(shlex.join(["queue-pipeline", "unsubscribe", one.endpoint, one.topic]) for one in theirs)
    who = ", ".join(dict.fromkeys(one.endpoint for one in theirs))
    return SubscriberError(
        f"subscriber {address} (endpoint {who}) cannot be sent to, and nothing was published: {why}; if it is gone for "
        f"good: {steps}"
    )
