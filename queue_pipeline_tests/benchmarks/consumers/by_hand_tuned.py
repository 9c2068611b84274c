"""The worked example with psycopg 3 and pydantic, tuned for speed: COPY rows packed by hand, headers as templates."""

from __future__ import annotations

import gc
import struct
import uuid
from collections import defaultdict
from datetime import date

from pydantic_core import to_json

from queue_pipeline.transport.messages.message import new_row_ids
from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.consumers.by_hand import PUT, TAKE, add_totals
from queue_pipeline_tests.benchmarks.consumers.envelopes import Envelopes, failed, read_headers, relate
from queue_pipeline_tests.benchmarks.consumers.pricing import RefusedError, price

COPY_START = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_END = b"\xff\xff"
_ROW_START = struct.Struct("!hi16si")
_LENGTH = struct.Struct("!i")


class ByHandTuned:
    """Deletes a batch, prices it, copies the results in and adds the totals: one transaction, exactly once."""

    def __init__(self, url: str) -> None:
        self._connection = peers.connect(url)
        # What the imports made stays for good; the collector need not look at it again.
        gc.freeze()

    def drain(self, batch: int) -> int:
        """Work until the queue is empty; returns the number of messages."""
        done = 0
        while taken := self._batch(batch):
            done += taken
        return done

    def _batch(self, size: int) -> int:
        with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
            rows = cursor.execute(TAKE, (size,), prepare=True).fetchall()
            if rows:
                work = Work(len(rows))
                for headers, body in rows:
                    work.add(headers, body)
                for queue, written in work.rows.items():
                    if written:
                        with cursor.copy(PUT.format(queue=queue)) as copy:
                            copy.write(b"".join((COPY_START, *written, COPY_END)))
                # Last, because the rows stay locked until the commit.
                add_totals(cursor, work.totals)
        return len(rows)


class Work:
    """What becomes of a batch: rows of binary COPY for each queue, and totals by country and day."""

    def __init__(self, count: int) -> None:
        self.rows: dict[str, list[bytes]] = {"billing": [], "shipping": [], "error": []}
        self.totals: dict[tuple[str, date], list[int]] = defaultdict(lambda: [0, 0])
        self._ids = new_row_ids(2 * count)
        self._envelopes = Envelopes()

    def add(self, text: str, body: bytes) -> None:
        """Process one message. No object of it is kept but bytes, which cost the garbage collector nothing."""
        headers: dict[str, str] = {}
        try:
            headers = read_headers(text)
            priced = price(body)
        except RefusedError as refusal:
            self.rows["error"].append(_copy_row(str(uuid.uuid4()), failed(headers, refusal), body))
            return
        related = relate(headers)
        for queue, result in (("billing", to_json(priced.invoice)), ("shipping", to_json(priced.parcel))):
            identity = next(self._ids)
            self.rows[queue].append(_copy_row(identity, self._envelopes.result(queue, identity, related), result))
        total = self.totals[priced.country, priced.day]
        total[0] += 1
        total[1] += priced.cents


def _copy_row(identity: str, headers: bytes, body: bytes) -> bytes:
    """A row of id, headers and body in the binary format of COPY."""
    raw = bytes.fromhex(identity.replace("-", ""))
    return b"".join((_ROW_START.pack(3, 16, raw, len(headers)), headers, _LENGTH.pack(len(body)), body))
