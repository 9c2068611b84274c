"""What became of a batch, told the same whichever way it took."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from queue_pipeline.processing.arrow import Array
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch, Unreadable
from queue_pipeline.processing.batch.executors import StagedResults
from queue_pipeline.processing.batch.part_report import PartReport
from queue_pipeline.processing.batch.transformer import Transformed
from queue_pipeline.processing.results.failed_copies import FailedCopies, MessageFailure
from queue_pipeline.transport.claims.claim import Claim

SLOWEST_KEPT = 5
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
    backend: str = "local"
    """Which backend computed it: this process (local), or Spark's executors."""

    @property
    def seconds(self) -> float:
        """How long the batch was in work."""
        return self.read_seconds + self.transform_seconds + self.complete_seconds


def driver_report(
    batch: ClaimedBatch,
    copies: FailedCopies,
    clock: Clock,
    results: Transformed | None = None,
    transformed: float = 0.0,
) -> BatchReport:
    """The report of a batch whose messages were at hand here."""
    claim, messages = batch.claim, batch.messages
    now = pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC"))
    elapsed = pc.cast(pc.subtract(now, messages["enqueued"]), pa.int64())
    latencies = pc.divide(pc.cast(elapsed, pa.float64()), 1e6)
    return BatchReport(
        claim_id=claim.claim_id,
        generation=claim.generation,
        messages=messages.num_rows + len(batch.unreadable),
        bytes=claim.bytes,
        sent=results.sent if results else 0,
        failed=[*copies.failed, *map(_unreadable, batch.unreadable)],
        expired=claim.expired,
        table_rows=sum(len(rows.rows) for rows in results.tables) if results else 0,
        read_seconds=batch.read_seconds,
        transform_seconds=transformed,
        complete_seconds=clock.lap(),
        latencies=latencies,
        slowest=_slowest(messages["id"], latencies),
        delayed=copies.delayed,
        without_outcome=results.without_outcome if results else 0,
    )


def executors_report(
    claim: Claim,
    results: StagedResults,
    copies: FailedCopies,
    clock: Clock,
    transformed: float,
) -> BatchReport:
    """The same from what executors counted: latencies are quantiles, each standing for its share of the messages."""
    now = datetime.now(UTC).timestamp() * 1e6
    parts = [part for part in results.parts if part.times]
    latencies = np.concatenate([_latencies(part, now) for part in parts] or [np.zeros(0, np.float32)])
    slowest = sorted(((str(part.oldest_id), (now - part.times[0]) / 1e6) for part in parts), key=lambda one: -one[1])
    return BatchReport(
        claim_id=claim.claim_id,
        generation=claim.generation,
        messages=claim.messages,
        bytes=claim.bytes,
        sent=sum(group.messages for group in results.groups),
        failed=[*copies.failed, *map(_unreadable, results.unreadable)],
        expired=claim.expired,
        table_rows=sum(len(rows.rows) for rows in results.tables),
        read_seconds=0.0,
        transform_seconds=transformed,
        complete_seconds=clock.lap(),
        latencies=pa.chunked_array([pa.array(latencies)]),
        slowest=slowest[:SLOWEST_KEPT],
        delayed=copies.delayed,
        without_outcome=results.without_outcome,
        backend="executors",
    )


def _latencies(part: PartReport, now: float) -> Array:
    """A latency for each message of a part that says when it was sent: the quantiles, each repeated."""
    quantiles = (now - np.array(part.times, np.float64)) / 1e6
    places = np.linspace(0, len(quantiles) - 1, part.known).round().astype(int)
    return quantiles[places].astype(np.float32)


def _slowest(ids: Array, latencies: Array) -> list[tuple[str, float]]:
    table = pa.table({"id": ids, "seconds": latencies})
    table = table.filter(pc.is_valid(table["seconds"]))
    chosen = pc.select_k_unstable(table, SLOWEST_KEPT, [("seconds", "descending")])
    return [(row["id"], row["seconds"]) for row in table.take(chosen).to_pylist()]


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
