"""What the seed decides: the content of every message, which messages always fail, and what workers draw.

A message is known by its number alone: senders make it, and the accountant makes it again to compare.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from queue_pipeline.transport import OutgoingMessage
from queue_pipeline.transport.messages import headers as wire

NUMBER = "Chaos.Number"
TEXT = "Chaos.Text"
DIGEST = "Chaos.Digest"
TRAIL = "Chaos.Trail"
"""The workers that a message passed, one word per stage; a `+` says that the worker wrote a row of its own."""
MIXED = "Chaos.Mixed"
"""Written by a worker that was handed columns which belong to different messages."""
CONTENT = (NUMBER, TEXT, DIGEST, wire.CORRELATION_ID)
"""The headers that every copy of a message keeps."""

STAGES = 2
NUMBERS_PER_WORKER = 10_000_000
DOOMED_SHARE = 0.0015
_TEXTS = ("", "plain", 'quo"te', "back\\slash/", "ümlaut", "日本語", "😀 astral", "{}", "{'a': 1}", "x" * 300, "é|=;,")
_SIZES = ((0, 0), (10, 60), (60, 400), (60, 400), (60, 400), (400, 2_000))
_LARGE_SHARE, _LARGE = 0.002, (20_000, 120_000)
_NUMBER_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Plan:
    """The content of messages for one seed; bodies are JSON and headers ASCII where a layout needs it."""

    seed: int
    is_json: bool

    def message(self, number: int) -> OutgoingMessage:
        """The message with this number, as it is sent to the first stage."""
        chance = random.Random(self.seed << 64 | number)
        size = chance.randint(*(_LARGE if chance.random() < _LARGE_SHARE else chance.choice(_SIZES)))
        body, text = chance.randbytes(size), chance.choice(_TEXTS)
        if self.is_json:
            content = {"$type": "Chaos.Message, Chaos", "n": number, "x": base64.b64encode(body).decode()}
            body, text = json.dumps(content, separators=(",", ":")).encode(), f"{chance.getrandbits(80):x}"
        return OutgoingMessage(body, {**_identity(0, number), **content_headers(number, text, body)})

    def unreadable(self, number: int) -> tuple[str, bytes]:
        """Headers that no reader can parse, and the body, of the message with this number."""
        chance = random.Random(self.seed << 64 | number)
        text = chance.choice(("{", '{"a":[1]}', "not json", '{"a":"b"}{"c":"d"}', "[1]", "null", '{"a":1}', '"text"'))
        return text, f"unreadable {number} ".encode() + chance.randbytes(20)

    def doomed_at(self, number: int) -> int | None:
        """The stage at which the message always fails; None for nearly all."""
        draw = hashlib.blake2b(f"{self.seed}/{number}".encode(), digest_size=8).digest()
        share = int.from_bytes(draw) / 2**64
        return int(share / DOOMED_SHARE * STAGES) if share < DOOMED_SHARE else None


def content_headers(number: int, text: str, body: bytes) -> dict[str, str]:
    """The headers that say what a message is, whatever its stage."""
    headers = {NUMBER: str(number), TEXT: text, wire.CORRELATION_ID: correlation_id(number)}
    together = "\0".join(headers.values()).encode() + b"\0" + body
    return {**headers, DIGEST: hashlib.blake2b(together, digest_size=12).hexdigest()}


def correlation_id(number: int) -> str:
    """The correlation id of a message, the same at every stage."""
    return f"c-{number}"


def message_id(stage: int, number: int) -> str:
    """The id of a message at a stage; the number can be read from it."""
    return str(uuid.UUID(int=(0xC4A05 << 100) | (stage << 64) | number))


def number_of_id(text: str | None) -> tuple[int, int] | None:
    """Stage and number that an id was made of; None for an id of anything else."""
    try:
        value = uuid.UUID(text or "").int
    except ValueError:
        return None
    return ((value >> 64) & 0xFF, value & _NUMBER_BITS) if value >> 100 == 0xC4A05 else None


def number_of(headers: Mapping[str, str]) -> int:
    """The number of a message."""
    return int(headers[NUMBER])


def forwarded(headers: Mapping[str, str], stage: int, worker: str, *, effect: bool) -> dict[str, str]:
    """The headers of what a worker sends on after a stage: the same content, a new id, a longer trail."""
    kept = {name: headers[name] for name in (*CONTENT, MIXED) if name in headers}
    trail = f"{headers.get(TRAIL, '')} {worker}{'+' if effect else '-'}".strip()
    return {**_identity(stage + 1, number_of(headers)), **kept, TRAIL: trail}


def _identity(stage: int, number: int) -> dict[str, str]:
    return {wire.MESSAGE_ID: message_id(stage, number)}
