"""A transformer without Spark: batches are really claimed, completed and recovered, only computed in plain Python."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence

from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch
from queue_pipeline.processing.batch.transformer import Transformed
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns


class PlainTransformer:
    """Sends a copy of every body to one queue, after a function of the bodies had its chance to raise.

    Counts how often it was called, and how often each body failed alone.
    """

    def __init__(self, work: Callable[[Sequence[bytes]], None] = lambda bodies: None, queue: str = "billing") -> None:
        self.work = work
        self.queue = queue
        self.refuse: dict[bytes, str] = {}
        self.calls: list[int] = []
        self.probes = 0
        self.alone: Counter[bytes] = Counter()
        self.is_there = True
        self._lock = threading.Lock()

    def transform(self, batch: ClaimedBatch, sending: Sending) -> Transformed:
        """What Spark would return."""
        versions, bodies = (batch.messages[name].to_pylist() for name in ("row_version", "body"))
        with self._lock:
            self.calls.append(len(bodies))
        try:
            self.work(bodies)
        except BaseException:
            with self._lock:
                self.alone.update(bodies if len(bodies) == 1 else ())
            raise
        failures = {
            version: Failure("Refused", self.refuse[body])
            for version, body in zip(versions, bodies, strict=True)
            if body in self.refuse
        }
        kept = [(message_id, body) for message_id, body in self._origins(batch) if body not in self.refuse]
        result_ids = [str(uuid.uuid5(uuid.NAMESPACE_OID, message_id)) for message_id, _ in kept]
        headers = [wire.encode({wire.MESSAGE_ID: one}) for one in result_ids]
        lives = [NEVER_EXPIRES] * len(kept)
        ready = MessageColumns(self.queue, False, result_ids, lives, headers, [body for _, body in kept])
        return Transformed([ready] if kept else [], failures)

    def probe(self) -> Exception | None:
        """What it says to nothing."""
        with self._lock:
            self.probes += 1
        try:
            self.work([])
        except Exception as error:
            return error
        return None

    def answers(self) -> bool:
        """Whether it is there."""
        return self.is_there

    @staticmethod
    def _origins(batch: ClaimedBatch) -> list[tuple[str, bytes]]:
        messages = batch.messages
        return list(zip(messages["message_id"].to_pylist(), messages["body"].to_pylist(), strict=True))


class Poisoned(ValueError):
    """What a poisoned transform raises."""


def poisoned_by(*poison: bytes) -> Callable[[Sequence[bytes]], None]:
    """Work that fails on certain bodies."""
    known = frozenset(poison)

    def work(bodies: Sequence[bytes]) -> None:
        bad = [body for body in bodies if body in known]
        if bad:
            raise Poisoned(f"{bad[0].decode()} is poison")

    return work
