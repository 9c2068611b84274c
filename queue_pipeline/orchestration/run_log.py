"""The log of a run: a line per minute about its batches, and lines about failures, written beside the batches.

Dagster keeps each line as a row, and its storage may be locked or away: batches neither fill it nor wait for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from queue_pipeline.orchestration import metadata
from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.recovery import Attempted
from queue_pipeline.processing.run.run_metrics import RunFigures

SUMMARY_SECONDS = 60.0
MOST_FAILURE_LINES = 20
"""Between two summaries; further ones are counted."""
END_SECONDS = 15.0
"""How long the end of a run waits for a storage that does not take its last lines."""
TERMINATED_SECONDS = 2.0

LogLine = tuple[int, str]
logger = logging.getLogger(__name__)


class RunSummary:
    """What happened in a run since the last line about it; bounded, however long that is."""

    _since: float
    _figures: RunFigures
    _last: BatchReport | None
    _failures: list[LogLine]
    _failure_lines: int
    _left_out: int

    def __init__(self, pipeline: QueuePipeline, now: float) -> None:
        self._pipeline = pipeline
        # The first batch gets a line at once: it shows that the run works.
        self._due = now
        self._begin(now)

    def add(self, attempted: Attempted) -> None:
        """Count an attempt, and keep the lines about what failed in it."""
        self._figures.add(attempted)
        self._last = attempted.reports[-1] if attempted.reports else self._last
        lines = list(metadata.lines(self._pipeline, attempted))
        kept = lines[: MOST_FAILURE_LINES - self._failure_lines]
        self._failures += kept
        self._failure_lines += len(kept)
        self._left_out += len(lines) - len(kept)

    @property
    def due(self) -> float | None:
        """When something is to be written; None while nothing happened."""
        if self._failures:
            return 0.0
        return self._due if self._figures.batches or self._left_out else None

    def take(self, now: float, *, at_once: bool = False) -> list[LogLine]:
        """The lines that are due, or all of them."""
        lines, self._failures = self._failures, []
        if not at_once and now < self._due:
            return lines
        if self._left_out:
            left_out = f"{self._left_out:,} further lines about failures in this time are left out"
            lines.append((logging.WARNING, left_out))
        if self._figures.batches == 1 and self._last is not None:
            lines.append((logging.INFO, metadata.sentence(self._last)))
        elif self._figures.batches:
            lines.append((logging.INFO, metadata.summary(self._figures, now - self._since)))
        if lines or at_once:
            self._due = now + SUMMARY_SECONDS
            self._begin(now)
        return lines

    def _begin(self, now: float) -> None:
        self._since = now
        self._figures = RunFigures()
        self._last = None
        self._failures = []
        self._failure_lines = 0
        self._left_out = 0


class RunLog:
    """Writes what happens in a run, in a thread of its own, until it is closed."""

    def __init__(
        self,
        pipeline: QueuePipeline,
        write: Callable[[int, str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`write` takes a level and a line; what it raises is no failure of the run."""
        self._name = pipeline.name
        self._write = write
        self._clock = clock
        self._summary = RunSummary(pipeline, clock())
        self._changed = threading.Condition()
        self._last_line: str | None = None
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name=f"{pipeline.name} log", daemon=True)
        self._thread.start()

    def add(self, attempted: Attempted) -> None:
        """Note an attempt; nothing is written by the caller."""
        with self._changed:
            self._summary.add(attempted)
            self._changed.notify()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """A run that is terminated has to release what it holds, and waits for its log even less."""
        is_terminated = kind is not None and not issubclass(kind, Exception)
        self.close(seconds=TERMINATED_SECONDS if is_terminated else END_SECONDS)

    def close(self, last_line: str | None = None, seconds: float = END_SECONDS) -> None:
        """Write what is left and a last line; a storage that does not take them in time is left alone."""
        with self._changed:
            if self._is_closing:
                return
            self._last_line, self._is_closing = last_line, True
            self._changed.notify()
        self._thread.join(seconds)
        if self._thread.is_alive():
            logger.warning("pipeline %s: Dagster did not take the last lines in %g s", self._name, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._is_closing and not self._is_due():
                    self._changed.wait(self._seconds())
                is_closing = self._is_closing
                lines = self._summary.take(self._clock(), at_once=is_closing)
                if is_closing and self._last_line is not None:
                    lines.append((logging.INFO, self._last_line))
            for level, line in lines:
                self._store(level, line)
            if is_closing:
                return

    def _is_due(self) -> bool:
        return self._summary.due is not None and self._clock() >= self._summary.due

    def _seconds(self) -> float | None:
        """Until something is to be written; None if an attempt has to come first."""
        return None if self._summary.due is None else max(0.0, self._summary.due - self._clock())

    def _store(self, level: int, line: str) -> None:
        try:
            self._write(level, line)
        except Exception as error:
            logger.warning("pipeline %s: a line could not be stored (%s): %s", self._name, error, line)
