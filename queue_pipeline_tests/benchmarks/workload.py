"""The messages that all consumers move: orders of the worked example, as the shop writes them."""

from __future__ import annotations

import json
import statistics
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from queue_pipeline.transport import OutgoingMessage
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.benchmarks.peers import CopyRow
from tools.example.orders import good_orders, order_body, order_message
from tools.example.samples import NOT_HEADERS, UNREADABLE_HEADERS, Sample, samples

SEED = 7
UNTIL = datetime(2025, 5, 1, tzinfo=UTC)
"""The last orders are of this time: the same orders for every run."""
BAD = 0.01
_LINE = {"Sku": "PEN-BLK", "Quantity": 1, "UnitPrice": 18.9}

# Rows made inside the database, of about the same size: for backlogs that are only there to wait.
FILL = """
INSERT INTO {queue} (id, expires, headers, body)
SELECT
    gen_random_uuid(), {expires},
    '{{"NServiceBus.MessageId":"' || gen_random_uuid() || '","filler":"' || repeat(md5(n::text), 10) || '"}}',
    convert_to(repeat(md5((-n)::text), 20), 'UTF8')
FROM generate_series(1, {count}) AS n
"""


def make_samples(count: int, bad: float) -> Iterator[Sample]:
    """Orders of the example, of which the share `bad` is unusable."""
    return samples(count, bad=bad, seed=SEED, until=UNTIL)


def make_messages(count: int) -> list[OutgoingMessage]:
    """Good orders; the same ones each time, but for the ids in their headers."""
    return [order_message(order_body(order)) for order in islice(good_orders(SEED, UNTIL), count)]


def copy_rows(found: Iterable[Sample]) -> list[CopyRow]:
    """Samples as rows of a queue, those with unreadable headers included."""
    return [
        (
            uuid.uuid4(),
            None,
            NOT_HEADERS if one.kind == UNREADABLE_HEADERS else wire.encode(one.message.headers),
            one.message.body,
        )
        for one in found
    ]


def sized_samples(count: int, body_bytes: int) -> Iterator[Sample]:
    """Orders with bodies of exactly this size: as many lines as go in, and a remark for the rest."""
    return (Sample(order_message(_sized_body(number, body_bytes))) for number in range(count))


def _sized_body(number: int, size: int) -> bytes:
    order: dict[str, Any] = {
        "OrderId": f"SO-{number:07d}",
        "Customer": "Ada Bakker",
        "Country": "NL",
        "Currency": "EUR",
        "PlacedAt": UNTIL.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "Lines": [_LINE],
        "Remark": "",
    }
    left = size - len(json.dumps(order))
    line = len(json.dumps(_LINE)) + len(", ")
    # At most half of the lines that go in: a large body is large for its texts, too.
    more = max(0, left // line // 2)
    order["Lines"] = [_LINE] * (1 + more)
    order["Remark"] = "r" * (left - more * line)
    return json.dumps(order).encode()


@dataclass(frozen=True, slots=True)
class MessageSize:
    """The mean size of messages on the wire, in bytes."""

    header_bytes: int
    body_bytes: int


def message_size(messages: Sequence[OutgoingMessage]) -> MessageSize:
    """How large these messages are, mean of the first thousand."""
    sample = messages[:1_000]
    return MessageSize(
        header_bytes=round(statistics.mean(len(wire.encode(message.headers).encode()) for message in sample)),
        body_bytes=round(statistics.mean(len(message.body) for message in sample)),
    )
