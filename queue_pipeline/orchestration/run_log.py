"""The log of a run: a report per minute, which plots show, and lines about failures.

Each is rows in Dagster's storage, which may be locked or away. So there are few of them, and no batch waits for them.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from queue_pipeline.orchestration import metadata
from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline.processing.run.run_metrics import RunFigures
from queue_pipeline.transport.texts import count_of

REPORT_SECONDS = 60.0
MOST_FAILURE_LINES = 20
"""Between two reports; further ones are counted."""
END_SECONDS = 15.0
"""How long the end of a run waits for a storage that does not take its last lines."""
TERMINATED_SECONDS = 2.0

LogLine = tuple[int, str]
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Minute:
    """What happened in a run since the last report, and a sentence about it."""

    figures: RunFigures
    sentence: str


class RunSummary:
    """What happened in a run since its last report; the number of lines is limited."""

    def __init__(self, pipeline: QueuePipeline, now: float) -> None:
        self._pipeline = pipeline
        self._last: BatchReport | None = None
        self._is_silent = True
        self._begin(now)

    def _begin(self, now: float, seconds_ago: float = 0.0) -> None:
        self._since, self._due = now - seconds_ago, now + REPORT_SECONDS
        self.figures = RunFigures()
        """The sums since the last report."""
        self.figures.start(seconds_ago)
        self._failures: list[LogLine] = []
        self._failure_lines = self._left_out = self._in_line = 0

    def add(self, attempted: Attempted, now: float) -> None:
        """Count an attempt, and keep the lines about what failed in it."""
        is_untouched = not (self.figures.batches or self.figures.failed_attempts)
        if attempted.reports and is_untouched and now >= self._due:
            # The run waited for messages: that time is no part of the throughput.
            self._begin(now, attempted.reports[0].seconds)
        self.figures.add(attempted)
        self._last = attempted.reports[-1] if attempted.reports else self._last
        lines = list(metadata.lines(self._pipeline, attempted))
        kept = lines[: MOST_FAILURE_LINES - self._failure_lines]
        self._failures += kept
        self._failure_lines += len(kept)
        self._left_out += len(lines) - len(kept)

    @property
    def due(self) -> float | None:
        """When something is to be written; None while nothing happened."""
        if self._failures or (self.figures.batches and self._is_silent):
            return 0.0
        return self._due if self.figures.batches or self._left_out else None

    def take(self, now: float, *, at_once: bool = False) -> tuple[list[LogLine], Minute | None]:
        """The lines that are due, or all of them, and the report of a minute that is over."""
        lines, self._failures = self._failures, []
        is_over = now >= self._due
        if self._left_out and (is_over or at_once):
            left_out = f"{count_of(self._left_out, 'further line')} about failures left out in this time"
            lines.append((logging.WARNING, left_out))
            self._left_out = 0
        if at_once or not is_over:
            # The first batch gets a line at once: it shows that the run works.
            if self.figures.batches > self._in_line and (self._is_silent or at_once):
                lines.append((logging.INFO, self._sentence(now)))
                self._in_line, self._is_silent = self.figures.batches, False
            return lines, None
        minute = Minute(self.figures, self._sentence(now)) if self.figures.batches else None
        self._begin(now)
        return lines, minute

    def _sentence(self, now: float) -> str:
        if self.figures.batches == 1 and self._last is not None:
            return metadata.sentence(self._last)
        return metadata.summary(self.figures, now - self._since)


class RunLog:
    """Writes what happens in a run, in a thread of its own, until it is closed."""

    def __init__(
        self,
        pipeline: QueuePipeline,
        write: Callable[[int, str], object],
        report: Callable[[Minute], object],
    ) -> None:
        """`write` takes a level and a line, `report` a minute; what they raise is no failure of the run."""
        self._name = pipeline.name
        self._write = write
        self._report = report
        self._summary = RunSummary(pipeline, time.monotonic())
        self._changed = threading.Condition()
        self._last_line: str | None = None
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name=f"{pipeline.name} log", daemon=True)
        self._thread.start()

    def add(self, attempted: Attempted) -> None:
        """Note an attempt; nothing is written by the caller."""
        with self._changed:
            self._summary.add(attempted, time.monotonic())
            self._changed.notify()

    @property
    def figures(self) -> RunFigures:
        """The sums since the last report: what the end of a run reports."""
        with self._changed:
            return self._summary.figures

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
                lines, minute = self._summary.take(time.monotonic(), at_once=is_closing)
                if is_closing and self._last_line is not None:
                    lines.append((logging.INFO, self._last_line))
            for level, line in lines:
                self._store(functools.partial(self._write, level, line), line)
            if minute is not None:
                self._store(functools.partial(self._report, minute), minute.sentence)
            if is_closing:
                return

    def _is_due(self) -> bool:
        return self._summary.due is not None and time.monotonic() >= self._summary.due

    def _seconds(self) -> float | None:
        """Until something is to be written; None if an attempt has to come first."""
        return None if self._summary.due is None else max(0.0, self._summary.due - time.monotonic())

    def _store(self, write: Callable[[], object], line: str) -> None:
        try:
            write()
        except Exception as error:
            logger.warning("pipeline %s: a line could not be stored (%s): %s", self._name, error, line)
