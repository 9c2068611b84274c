"""The worked example as a good engineer writes it with psycopg 3 and pydantic: one transaction per batch, COPY."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from datetime import UTC, date, datetime
from typing import Any

from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.consumers.envelopes import ENDPOINT, MESSAGE_TYPES, failed, read_headers
from queue_pipeline_tests.benchmarks.consumers.pricing import RefusedError, price

TAKE = """
DELETE FROM orders
WHERE ctid = ANY (ARRAY(SELECT ctid FROM orders ORDER BY seq LIMIT %s FOR UPDATE SKIP LOCKED))
RETURNING headers, body
"""
PUT = "COPY {queue} (id, headers, body) FROM STDIN (FORMAT BINARY)"
# In the order of the key: two processes that lock rows in different orders would wait for each other.
ADD = """
INSERT INTO order_totals AS known (country, day, orders, revenue)
SELECT * FROM unnest(%s::text[], %s::date[], %s::bigint[], %s::numeric[]) AS added (country, day, orders, revenue)
ORDER BY country, day
ON CONFLICT (country, day) DO UPDATE
SET orders = known.orders + excluded.orders, revenue = known.revenue + excluded.revenue
"""

Totals = dict[tuple[str, date], list[int]]


class ByHand:
    """Deletes a batch, prices it, copies the results in and adds the totals: one transaction, exactly once."""

    def __init__(self, url: str) -> None:
        self._connection = peers.connect(url)

    def drain(self, batch: int) -> int:
        """Work until the queue is empty; returns the number of messages."""
        done = 0
        while taken := self._batch(batch):
            done += taken
        return done

    def _batch(self, size: int) -> int:
        with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
            rows = cursor.execute(TAKE, (size,), prepare=True).fetchall()
            results: dict[str, list[Any]] = {"billing": [], "shipping": [], "error": []}
            totals: Totals = defaultdict(lambda: [0, 0])
            for text, body in rows:
                _process(text, body, results, totals)
            for queue, written in results.items():
                if written:
                    with cursor.copy(PUT.format(queue=queue)) as copy:
                        copy.set_types(["uuid", "text", "bytea"])
                        for row in written:
                            copy.write_row(row)
            # Last, because the rows stay locked until the commit.
            add_totals(cursor, totals)
        return len(rows)


def _process(text: str, body: bytes, results: dict[str, list[Any]], totals: Totals) -> None:
    """What becomes of one message."""
    headers: dict[str, str] = {}
    try:
        headers = read_headers(text)
        priced = price(body)
    except RefusedError as refusal:
        results["error"].append((uuid.uuid4(), failed(headers, refusal).decode(), body))
        return
    for queue, result in (("billing", priced.invoice), ("shipping", priced.parcel)):
        identity = uuid.uuid4()
        results[queue].append((identity, _headers(queue, identity, headers), json.dumps(result).encode()))
    total = totals[priced.country, priced.day]
    total[0] += 1
    total[1] += priced.cents


def _headers(queue: str, identity: uuid.UUID, headers: dict[str, str]) -> str:
    """The headers of a result, with what relates it to its message."""
    return json.dumps(
        {
            wire.MESSAGE_ID: str(identity),
            wire.CORRELATION_ID: headers[wire.CORRELATION_ID],
            wire.CONVERSATION_ID: headers[wire.CONVERSATION_ID],
            wire.RELATED_TO: headers[wire.MESSAGE_ID],
            wire.ENCLOSED_MESSAGE_TYPES: MESSAGE_TYPES[queue],
            wire.MESSAGE_INTENT: "Send",
            wire.CONTENT_TYPE: "application/json",
            wire.TIME_SENT: wire.format_timestamp(datetime.now(UTC)),
            wire.ORIGINATING_ENDPOINT: ENDPOINT,
            wire.ORIGINATING_MACHINE: wire.machine_name(),
            wire.ORIGINATING_HOST_ID: wire.host_id(),
            wire.REPLY_TO_ADDRESS: ENDPOINT,
        }
    )


def add_totals(cursor: Any, totals: dict[tuple[str, date], list[int]]) -> None:
    """Add the orders and cents of each country and day to the table."""
    columns = zip(*((*key, orders, f"{cents / 100:.2f}") for key, (orders, cents) in totals.items()), strict=True)
    if totals:
        cursor.execute(ADD, [list(column) for column in columns], prepare=True)
