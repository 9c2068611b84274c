"""The figures of a run: sums over its batches, and how long messages were under way."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.batch.sent_times import SLOWEST_KEPT
from queue_pipeline.processing.results.failed_copies import MessageFailure
from queue_pipeline.processing.run.attempted import Attempted

FAILED_KEPT = 20


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from enqueue to completion."""

    p50: float
    p95: float
    longest: float


@dataclass
class RunFigures:
    """Adds up the batches of a run; reports may come from several threads."""

    batches: int = 0
    batches_by_executors: int = 0
    messages: int = 0
    bytes: int = 0
    sent: int = 0
    failed: int = 0
    delayed: int = 0
    without_outcome: int = 0
    failed_attempts: int = 0
    expired: int = 0
    table_rows: int = 0
    attempts: int = 0
    read_seconds: float = 0.0
    transform_seconds: float = 0.0
    complete_seconds: float = 0.0
    failures: list[MessageFailure] = field(default_factory=list)
    slowest: list[tuple[str, float]] = field(default_factory=list)
    _latencies: list[Any] = field(default_factory=list)
    _first: float | None = None
    _last: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, seconds_ago: float = 0.0) -> None:
        """Start the clock of the throughput; the first batch that is taken does."""
        with self._lock:
            if self._first is None:
                self._first = time.monotonic() - seconds_ago

    def add(self, attempted: Attempted) -> None:
        """Count an attempt, and the batches that ended with it."""
        with self._lock:
            self.failed_attempts += attempted.failure is not None
        for report in attempted.reports:
            self.add_batch(report)

    def add_batch(self, report: BatchReport) -> None:
        """Count a batch that ended."""
        with self._lock:
            self.batches += 1
            self.batches_by_executors += report.backend == "executors"
            self.delayed += report.delayed
            self.messages += report.messages
            self.bytes += report.bytes
            self.sent += report.sent
            self.without_outcome += report.without_outcome
            self.failed += len(report.failed)
            self.expired += report.expired
            self.table_rows += report.table_rows
            self.attempts = max(self.attempts, report.generation)
            self.read_seconds += report.read_seconds
            self.transform_seconds += report.transform_seconds
            self.complete_seconds += report.complete_seconds
            self.failures = [*self.failures, *report.failed][:FAILED_KEPT]
            self.slowest = slowest([*self.slowest, *report.slowest])
            self._latencies.append(pc.cast(report.latencies, pa.float32()))
            self._last = time.monotonic()

    @property
    def busy_seconds(self) -> float:
        """From the first batch taken to the last one completed: lingering is not counted."""
        return max(0.0, self._last - self._first) if self._first is not None and self.batches else 0.0

    @property
    def messages_per_second(self) -> float:
        """The throughput while there was something to do."""
        return self.messages / self.busy_seconds if self.busy_seconds else 0.0

    @property
    def latency(self) -> Latency | None:
        """The spread of latencies over the run; None when no message carried the time of its sending."""
        chunks = [chunk for latencies in self._latencies for chunk in latencies.chunks]
        known = pc.drop_null(pa.chunked_array(chunks, pa.float32())) if chunks else None
        if known is None or len(known) == 0:
            return None
        p50, p95 = pc.quantile(known, q=[0.5, 0.95]).to_pylist()
        return Latency(p50, p95, pc.max(known).as_py())


def slowest(candidates: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The messages that took longest."""
    return sorted(candidates, key=lambda one: -one[1])[:SLOWEST_KEPT]
