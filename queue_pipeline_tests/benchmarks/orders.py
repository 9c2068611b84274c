"""The tables of the worked example: orders are sent again for each measurement, and the results checked after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.backlogs import settle
from queue_pipeline_tests.benchmarks.consumers.pricing import RefusedError, price
from queue_pipeline_tests.benchmarks.server import outside_transaction
from queue_pipeline_tests.benchmarks.workload import copy_rows
from tools.example import shop
from tools.example.samples import UNREADABLE_HEADERS, Sample

INPUT, MOVED = shop.ORDERS, "moved"
RESULTS = (shop.BILLING, shop.SHIPPING)
EMPTIED = (INPUT, *RESULTS, shop.ERROR, shop.TOTALS, MOVED)
KEPT_BY_OURS = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename = ANY (%s)"
OURS = ["QueueClaims", "QueueOutbox", *(f"{queue}.Claimed" for queue in (INPUT, *RESULTS))]
"""Tables that the product keeps beside the queues, as far as it has them."""

SEND = """
INSERT INTO orders (id, headers, body)
SELECT
    gen_random_uuid(),
    replace(headers, coalesce(substring(headers FROM '"NServiceBus.MessageId":"([^"]+)"'), ''), fresh),
    body
FROM (
    SELECT *, CAST(gen_random_uuid() AS text) AS fresh
    FROM {source}, generate_series(1, %s) AS repetition
    ORDER BY repetition, seq
    LIMIT %s
) AS waiting
ORDER BY repetition, seq
"""
"""Sends the orders of a source in their order, repeated if it has fewer; every message has an id of its own."""
RELATED = "SELECT count(*), count(DISTINCT headers::json ->> 'NServiceBus.RelatedTo') FROM {queue}"
FOUND = """
SELECT
    (SELECT count(*) FROM error),
    (SELECT coalesce(sum(orders), 0)::bigint FROM order_totals),
    (SELECT coalesce(round(sum(revenue) * 100), 0)::bigint FROM order_totals)
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Orders that are sent again and again: their table, and the total in cents of each, or None for a bad one."""

    table: str
    cents: Sequence[int | None]

    def expected(self, count: int) -> Found:
        """What has to be there after the first `count` orders of endless repetitions were processed."""
        whole, rest = divmod(count, len(self.cents))
        good = [[one for one in part if one is not None] for part in (self.cents, self.cents[:rest])]
        orders = whole * len(good[0]) + len(good[1])
        return Found(orders, orders, orders, orders, count - orders, orders, whole * sum(good[0]) + sum(good[1]), 0)


@dataclass(frozen=True, slots=True)
class Found:
    """The results of some orders."""

    invoices: int
    invoiced: int
    """Different orders that invoices relate to."""
    parcels: int
    packed: int
    """Different orders that parcels relate to."""
    failed: int
    counted: int
    """Orders in the table of totals."""
    cents: int
    """The sum of all totals."""
    left: int
    """Messages that are still in the queue."""


class Orders:
    """Fills the input for each measurement, and looks at the output after it."""

    def __init__(self, transport: QueueTransport, connection: Any) -> None:
        self._transport = transport
        self._connection = connection
        shop.install(transport)
        transport.install(plain_queues=[MOVED])
        found = connection.execute(KEPT_BY_OURS, (OURS,)).fetchall()
        connection.commit()
        self._emptied = [*EMPTIED, *(name for (name,) in found)]

    def load(self, name: str, samples: Iterable[Sample]) -> Source:
        """Keep these orders in a table of their own, as the source of what is sent."""
        kept, table = list(samples), f"source_{name}"
        self._transport.install(plain_queues=[table])
        outside_transaction(self._connection, f"TRUNCATE {table}")
        peers.copy_in(self._connection, table, copy_rows(kept))
        settle(self._connection, table)
        return Source(table, [_cents(sample) for sample in kept])

    def also_empty(self, *tables: str) -> None:
        """Tables of a peer that start every measurement empty."""
        self._emptied += tables

    def clear(self) -> None:
        """Empty everything; a checkpoint comes before messages are sent, not between that and their receipt."""
        tables = ", ".join(f'"{name}"' for name in self._emptied)
        outside_transaction(self._connection, f"TRUNCATE {tables} CASCADE")
        outside_transaction(self._connection, "CHECKPOINT")

    def send(self, source: Source, count: int) -> None:
        """Let this many orders wait."""
        self.clear()
        self._connection.execute(SEND.format(source=source.table), (-(-count // len(source.cents)), count))
        self._connection.commit()
        settle(self._connection, INPUT)

    def check_moved(self, way: str, count: int) -> None:
        """Check that every row arrived."""
        moved = self._connection.execute(f"SELECT count(*) FROM {MOVED}").fetchone()[0]
        self._connection.commit()
        if moved != count:
            raise RuntimeError(f"{way}: {moved:,} rows arrived instead of {count:,}")

    def check(self, way: str, source: Source, count: int, *, taken: bool = True) -> None:
        """Check that each order has one invoice and one parcel or failed, and that the totals are right.

        `taken` is False for a way that leaves the messages in the queue.
        """
        found, expected = self._found(taken=taken), source.expected(count)
        if found != expected:
            raise RuntimeError(f"{way}: {found} of {count:,} orders; expected {expected}")

    def _found(self, *, taken: bool) -> Found:
        values: list[int] = []
        for queue in RESULTS:
            values += self._connection.execute(RELATED.format(queue=queue)).fetchone()
        values += self._connection.execute(FOUND).fetchone()
        values += self._connection.execute(f"SELECT count(*) FROM {INPUT}").fetchone() if taken else [0]
        self._connection.commit()
        return Found(*values)


def _cents(sample: Sample) -> int | None:
    if sample.kind == UNREADABLE_HEADERS:
        return None
    try:
        return price(sample.message.body).cents
    except RefusedError:
        return None
