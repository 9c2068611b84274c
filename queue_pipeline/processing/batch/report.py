"""The report of a batch, in the same terms for both backends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from queue_pipeline.processing.arrow import Array
from queue_pipeline.processing.batch.backend import BackendName, Processed
from queue_pipeline.processing.batch.claimed_batch import Unreadable
from queue_pipeline.processing.results.failed_copies import FailedCopies, MessageFailure

HEADERS_UNREADABLE = "MessageHeadersUnreadable"
"""The error type of a row whose headers are no flat JSON object."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What became of a batch."""

    claim_id: str
    generation: int
    messages: int
    bytes: int
    sent: int
    failed: Sequence[MessageFailure]
    expired: int
    table_rows: int
    read_seconds: float
    transform_seconds: float
    complete_seconds: float
    latencies: Array
    """Seconds from the sender's clock to completion, null where the sender wrote no time."""
    slowest: Sequence[tuple[str, float]] = ()
    """The messages that took longest, with their seconds."""
    delayed: int = 0
    """Messages that failed and are tried again later."""
    without_outcome: int = 0
    """Messages for which the transform returned nothing; they are done."""
    backend: BackendName = "local"

    @property
    def seconds(self) -> float:
        """How long the batch was in work."""
        return self.read_seconds + self.transform_seconds + self.complete_seconds


def report_of(processed: Processed, copies: FailedCopies, clock: Clock, computed: float = 0.0) -> BatchReport:
    """The report of a batch that was written just now; `clock` was last asked when it was computed."""
    claim, now = processed.claim, datetime.now(UTC)
    return BatchReport(
        claim_id=claim.claim_id,
        generation=claim.generation,
        messages=processed.read.messages,
        bytes=claim.bytes,
        sent=processed.sent,
        failed=[*copies.failed, *map(_unreadable, processed.unreadable)],
        expired=claim.expired,
        table_rows=sum(len(rows.rows) for rows in processed.tables),
        read_seconds=processed.read_seconds,
        transform_seconds=computed,
        complete_seconds=clock.lap(),
        latencies=processed.times.latencies(now),
        slowest=processed.times.slowest(now),
        delayed=copies.delayed,
        without_outcome=processed.without_outcome,
        backend=processed.backend,
    )


def _unreadable(row: Unreadable) -> MessageFailure:
    return MessageFailure(row.id, None, HEADERS_UNREADABLE, row.problem)


class Clock:
    """Seconds from lap to lap."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        """Since the last lap."""
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        return elapsed
