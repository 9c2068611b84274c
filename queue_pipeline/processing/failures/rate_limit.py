"""The rate limit: a pipeline whose attempts keep failing works on one batch at a time, until one succeeds."""

from __future__ import annotations

import threading

from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.transport.claims.failure_counts import FailureCounts


class RateLimit:
    """Counts the failures in a row of a queue, those of other receivers too; safe to use from several threads."""

    def __init__(self, policy: Recoverability, counts: FailureCounts, queue: str) -> None:
        """`queue` is a canonical address; a caller that counts a failure in the database calls `failed` with it."""
        self._policy = policy
        self._counts = counts
        self.queue = queue
        self._failures = 0
        self._changes = 0
        self._lock = threading.Lock()

    @property
    def failures(self) -> int:
        """How many there are in a row."""
        return self._failures

    @property
    def is_on(self) -> bool:
        """Whether one batch at a time is enough."""
        return self._policy.is_limited(self._failures)

    @property
    def pause_seconds(self) -> float:
        """How long to wait after a failure."""
        return self._policy.rate_limit_seconds if self.is_on else 0.0

    def look(self) -> None:
        """See what other receivers of the queue counted."""
        before = self._changes
        found = self._counts.list().get(self.queue)
        with self._lock:
            # What was counted here in the meantime is newer than what was read.
            if self._changes == before:
                self._failures = found.failures if found else 0

    def failed(self, in_a_row: int) -> None:
        """An attempt failed; the database counted this many in a row."""
        with self._lock:
            self._changes += 1
            self._failures = in_a_row

    def succeeded(self) -> None:
        """An attempt succeeded: all receivers work at full speed again."""
        with self._lock:
            self._changes += 1
            known, self._failures = self._failures, 0
        if known:
            self._counts.clear(self.queue)
