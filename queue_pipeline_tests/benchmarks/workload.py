"""The messages that everybody moves: about 1 KiB, headers as an endpoint of ours writes them."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from queue_pipeline.transport import OutgoingMessage, new_message
from queue_pipeline.transport import headers as wire

_LINES = 6
_LONGEST_LINE = 70

# Rows made inside the database, of the same size: for backlogs that are only there to wait.
FILL = """
INSERT INTO {queue} (id, expires, headers, body)
SELECT
    gen_random_uuid(), {expires},
    '{{"NServiceBus.MessageId":"' || gen_random_uuid() || '","filler":"' || repeat(md5(n::text), 10) || '"}}',
    convert_to(repeat(md5((-n)::text), 20), 'UTF8')
FROM generate_series(1, {count}) AS n
"""


def make_messages(count: int, seed: int = 7) -> list[OutgoingMessage]:
    """Orders with a few lines each; the same ones for the same seed, but for the ids in their headers."""
    chance = random.Random(seed)
    return [_message(_order(number, chance)) for number in range(count)]


def sized_messages(count: int, body_bytes: int, seed: int = 7) -> list[OutgoingMessage]:
    """Orders with bodies of exactly this size: as many lines as go in, and a note for the rest."""
    chance = random.Random(seed)
    return [_message(_sized_order(number, body_bytes, chance)) for number in range(count)]


def _message(body: str) -> OutgoingMessage:
    return new_message(body, message_type="Shop.Messages.PlaceOrder", endpoint="Shop.Sales")


def _order(number: int, chance: random.Random) -> str:
    order = {
        "order": number,
        "customer": f"customer-{chance.randrange(10**6):06d}@example.com",
        "placed": f"2024-05-{chance.randint(1, 28):02d}T12:00:00Z",
        "note": f"{chance.getrandbits(256):064x}",
        "lines": [_line(chance) for _ in range(_LINES)],
    }
    return json.dumps(order)


def _sized_order(number: int, size: int, chance: random.Random) -> str:
    order = {"order": number, "customer": f"c-{chance.randrange(10**6):06d}", "note": "", "lines": []}
    left = size - len(json.dumps(order))
    lines: list[dict[str, Any]] = []
    while left > 2 * _LONGEST_LINE:
        lines.append(_line(chance))
        left -= len(json.dumps(lines[-1])) + len(", ")
    # The first line needs no comma.
    note = "n" * (left + (len(", ") if lines else 0))
    return json.dumps({**order, "note": note, "lines": lines})


def _line(chance: random.Random) -> dict[str, Any]:
    return {
        "sku": f"SKU-{chance.randrange(10**8):08d}",
        "quantity": chance.randint(1, 9),
        "price": chance.randrange(10**5) / 100,
    }


@dataclass(frozen=True, slots=True)
class MessageSize:
    """The mean size of messages on the wire, in bytes."""

    header_bytes: int
    body_bytes: int


def message_size(messages: Sequence[OutgoingMessage]) -> MessageSize:
    """How large these messages are, mean of a sample."""
    sample = messages[:1_000]
    return MessageSize(
        header_bytes=round(statistics.mean(len(wire.encode(message.headers).encode()) for message in sample)),
        body_bytes=round(statistics.mean(len(message.body) for message in sample)),
    )
