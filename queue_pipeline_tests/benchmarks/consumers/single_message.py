"""One message per transaction, as an NServiceBus endpoint works: receive, handle, send the results, commit."""

from __future__ import annotations

import uuid
from typing import Any

from pydantic_core import to_json

from queue_pipeline.transport.messages.message import new_row_ids
from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.consumers.envelopes import Envelopes, failed, read_headers, relate
from queue_pipeline_tests.benchmarks.consumers.pricing import RefusedError, price

TAKE = """
DELETE FROM orders
WHERE seq = (SELECT seq FROM orders ORDER BY seq LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING headers, body
"""
# One statement, so that the three are one round trip.
PROCESS = """
WITH billed AS (INSERT INTO billing (id, headers, body) VALUES (%s, %s, %s)),
    shipped AS (INSERT INTO shipping (id, headers, body) VALUES (%s, %s, %s))
INSERT INTO order_totals AS known (country, day, orders, revenue) VALUES (%s, %s, 1, %s::numeric)
ON CONFLICT (country, day) DO UPDATE
SET orders = known.orders + excluded.orders, revenue = known.revenue + excluded.revenue
"""
FAIL = "INSERT INTO error (id, headers, body) VALUES (%s, %s, %s)"


class SingleMessage:
    """Takes a message, writes its results and commits, by prepared statements.

    Several of these processes are the receives that an endpoint has in flight.
    """

    def __init__(self, url: str) -> None:
        self._connection = peers.connect(url)
        self._cursor: Any = self._connection.cursor(binary=True)

    def drain(self) -> int:
        """Work until the queue is empty; returns the number of messages."""
        done = 0
        while self._one():
            done += 1
        return done

    def _one(self) -> bool:
        row = self._cursor.execute(TAKE, prepare=True).fetchone()
        if row is not None:
            self._cursor.execute(*_statement(*row), prepare=True)
        self._connection.commit()
        return row is not None


def _statement(text: str, body: bytes) -> tuple[str, tuple[Any, ...]]:
    """The statement that writes what becomes of an order, and its values."""
    headers: dict[str, str] = {}
    try:
        headers = read_headers(text)
        priced = price(body)
    except RefusedError as refusal:
        return FAIL, (uuid.uuid4(), failed(headers, refusal).decode(), body)
    envelopes, related = Envelopes(), relate(headers)
    values: list[Any] = []
    for identity, (queue, result) in zip(
        new_row_ids(2), (("billing", to_json(priced.invoice)), ("shipping", to_json(priced.parcel))), strict=True
    ):
        values += (uuid.UUID(identity), envelopes.result(queue, identity, related).decode(), result)
    return PROCESS, (*values, priced.country, priced.day, f"{priced.cents / 100:.2f}")
