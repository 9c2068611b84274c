"""Samples for the queue `orders`: good orders, and a share of bad ones of every kind that a pipeline has to survive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import OutgoingMessage
from queue_pipeline.transport.messages.message_columns import MessageColumns
from tools.example.orders import Order, good_orders, order_body, order_message

UNREADABLE_HEADERS = "unreadable headers"
NOT_HEADERS = "<headers><header name='tenant'>north</header></headers>"
"""What a row of another system might hold where JSON is expected."""


def _broken(order: Order) -> bytes:
    body = order_body(order)
    return body[: len(body) * 2 // 3]


def _without_customer(order: Order) -> bytes:
    return order_body({name: value for name, value in order.items() if name != "Customer"})


def _nothing_ordered(order: Order) -> bytes:
    first, *rest = order["Lines"]
    return order_body({**order, "Lines": [{**first, "Quantity": 0}, *rest]})


def _in_dollars(order: Order) -> bytes:
    return order_body({**order, "Currency": "USD"})


def _far_away(order: Order) -> bytes:
    return order_body({**order, "Country": "NZ"})


KINDS: dict[str, Callable[[Order], bytes]] = {
    "broken JSON": _broken,
    "missing field": _without_customer,
    "quantity 0": _nothing_ordered,
    "wrong currency": _in_dollars,
    "country not served": _far_away,
    UNREADABLE_HEADERS: order_body,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """A message, and what is wrong with it."""

    message: OutgoingMessage
    kind: str | None = None


def samples(count: int, *, bad: float = 0.0, seed: int, until: datetime | None = None) -> Iterator[Sample]:
    """`count` messages, of which the share `bad` is unusable: spread evenly, each kind in its turn."""
    if not 0 <= bad <= 1:
        raise ConfigurationError(f"a share of {bad} bad orders; give 0 to 1")
    kinds, spoiled = list(KINDS), 0
    for number, order in zip(range(1, count + 1), good_orders(seed, until), strict=False):
        # Rounded because the share is no exact number: 0.07 * 100 is more than 7.
        if spoiled < int(round(number * bad, 6)):
            kind = kinds[spoiled % len(kinds)]
            spoiled += 1
            yield Sample(order_message(KINDS[kind](order)), kind)
        else:
            yield Sample(order_message(order_body(order)))


@dataclass(slots=True)
class Parcel:
    """Samples as what the transport sends: messages, and rows whose headers no encoder would write."""

    messages: list[OutgoingMessage] = field(default_factory=list)
    raw: list[OutgoingMessage] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, sample: Sample) -> None:
        """Put a sample in its place."""
        (self.raw if sample.kind == UNREADABLE_HEADERS else self.messages).append(sample.message)
        if sample.kind is not None:
            self.kinds[sample.kind] += 1

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self.messages) + len(self.raw)

    def ready(self, queue: str) -> MessageColumns:
        """The rows with headers that cannot be read; a text that is ready is stored as it is."""
        return MessageColumns(
            queue,
            False,
            [message.headers[wire.MESSAGE_ID] for message in self.raw],
            [NEVER_EXPIRES] * len(self.raw),
            [NOT_HEADERS] * len(self.raw),
            [message.body for message in self.raw],
        )
