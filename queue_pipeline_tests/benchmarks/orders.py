"""The tables that everybody works on: orders wait in `sent`, invoices go to `results`, and nothing may be lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from queue_pipeline.transport import Operation, OutgoingMessage, QueueTransport
from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.backlogs import settle
from queue_pipeline_tests.benchmarks.consumers.invoices import invoice
from queue_pipeline_tests.benchmarks.server import outside_transaction

OURS = ("sent.Claimed", "QueueClaims", "QueueOutbox")
ROUNDING = 0.0051
"""How far two ways may be apart in a total: one rounds half cents up, another to the even one."""
FILL = """
INSERT INTO sent (id, headers, body)
SELECT gen_random_uuid(), replace(headers, substring(headers FROM '"NServiceBus.MessageId":"([^"]+)"'), fresh), body
FROM (
    SELECT *, CAST(gen_random_uuid() AS text) AS fresh
    FROM source, generate_series(1, %s) AS repetition
    ORDER BY repetition, seq
    LIMIT %s
) AS orders
ORDER BY repetition, seq
"""
"""Sends the orders of the source in their order, several times if it has fewer; every message has an id of its own."""
FOUND = """
SELECT count(*), count(DISTINCT headers::json ->> 'NServiceBus.RelatedTo'),
    coalesce(sum((convert_from(body, 'UTF8')::json ->> 'total')::float), 0)
FROM results
"""


class Orders:
    """Fills the input anew for each measurement, and looks at the output after it."""

    def __init__(self, transport: QueueTransport, connection: Any) -> None:
        self._transport = transport
        self._connection = connection
        self._others: tuple[str, ...] = ()
        self._totals: list[float] = []
        self.rows: list[peers.CopyRow] = []
        transport.install("sent", plain_queues=["results", "source", "copied", "error"])

    def load(self, messages: Sequence[OutgoingMessage]) -> None:
        """Keep these messages as the source of all that is sent."""
        (shipment,) = self._transport.sender.prepare(Operation("source", message) for message in messages)
        self.rows = peers.copy_rows(shipment.rows())
        outside_transaction(self._connection, "TRUNCATE source")
        peers.copy_in(self._connection, "source", self.rows)
        settle(self._connection, "source")
        self._totals = [json.loads(invoice(message.body))["total"] for message in messages]

    def also_empty(self, *tables: str) -> None:
        """Tables of somebody else's that start every measurement empty."""
        self._others += tables

    def clear(self) -> None:
        """Empty everything; a checkpoint comes before messages are sent, not between that and their receipt."""
        tables = ", ".join(f'"{name}"' for name in ("sent", "results", "copied", *OURS, *self._others))
        outside_transaction(self._connection, f"TRUNCATE {tables} CASCADE")
        outside_transaction(self._connection, "CHECKPOINT")

    def send(self, count: int) -> None:
        """Have so many messages wait."""
        self.clear()
        self._connection.execute(FILL, (-(-count // len(self.rows)), count))
        self._connection.commit()
        settle(self._connection, "sent")

    def check_moved(self, way: str, count: int) -> None:
        """Every row is there, as it was."""
        found = self._connection.execute("SELECT count(*) FROM results").fetchone()[0]
        self._connection.commit()
        if found != count:
            raise RuntimeError(f"{way}: {found:,} rows arrived, and should be {count:,}")

    def check_invoices(self, way: str, count: int, *, taken: bool = True) -> None:
        """Each message has exactly one invoice, the sums are right, and nothing is left in the queue."""
        found, different, total = self._connection.execute(FOUND).fetchone()
        left = self._connection.execute("SELECT count(*) FROM sent").fetchone()[0] if taken else 0
        self._connection.commit()
        if (found, different, left) != (count, count, 0):
            raise RuntimeError(
                f"{way}: {found:,} invoices of {different:,} messages, and {left:,} left in the queue; "
                f"there should be one for each of {count:,} messages"
            )
        whole, rest = divmod(count, len(self._totals))
        expected = whole * sum(self._totals) + sum(self._totals[:rest])
        if abs(total - expected) > ROUNDING * count:
            raise RuntimeError(f"{way}: the invoices come to {total:,.2f}, and should to {expected:,.2f}")
