"""`status --watch`: the same figures live, with messages in and out per second."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from queue_pipeline.cli.output import console, duration, figure, flush, shortened, table_of, visible, write_lines
from queue_pipeline.cli.parameters import Seconds
from queue_pipeline.cli.session import Session
from queue_pipeline.errors import AddressError, QueuePipelineError, TableNotFoundError
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.claims.failure_counts import FailureCount
from queue_pipeline.transport.inspection.status import QueueStatus
from queue_pipeline.transport.texts import last_of
from queue_pipeline.transport.transport import QueueTransport

DEFAULT_INTERVAL = 2.0
INTERVAL = Seconds(0.1, 3_600.0, "a number of seconds from 0.1 to 3600; name queues before --watch")
COLUMNS = ("queue", "waiting", "in/s", "out/s", "oldest", "in work", "failed", "delayed")


@dataclass(frozen=True, slots=True)
class QueueReading:
    """A queue at one moment."""

    at: float
    figures: QueueStatus
    issued: int | None
    """The last number that the queue gave to a message; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages per second that came in, and that left: completed, failed or expired. None while not known."""

    incoming: float | None = None
    outgoing: float | None = None


@dataclass(frozen=True, slots=True)
class WatchedQueue:
    """What is shown of a queue."""

    figures: QueueStatus
    rates: Rates
    failed: int | None
    """Messages that failed in this queue: in the error queue, or in the queue itself if it is one of NGinn."""
    failing: FailureCount | None


def rates(before: QueueReading | None, now: QueueReading) -> Rates:
    """What happened between two readings. A queue that was purged or made anew meanwhile counts as nothing."""
    if before is None or now.at <= before.at:
        return Rates()
    seconds = now.at - before.at
    if now.figures.processed is not None:
        # An NGinn queue keeps what it has processed.
        outgoing = max(0, _done(now.figures) - _done(before.figures))
        incoming = max(0, _held(now.figures) - _held(before.figures) + outgoing)
        return Rates(incoming / seconds, outgoing / seconds)
    if now.issued is None or before.issued is None:
        return Rates()
    incoming = max(0, now.issued - before.issued)
    if now.figures.capped or before.figures.capped:
        return Rates(incoming / seconds)
    outgoing = max(0, incoming - (_held(now.figures) - _held(before.figures)))
    return Rates(incoming / seconds, outgoing / seconds)


class _QueueReader:
    """Reads the queues again and again, and remembers the readings before."""

    def __init__(self, transport: QueueTransport, queues: Sequence[str], error_queue: str) -> None:
        self._transport = transport
        self._queues = queues
        self._error_queue = transport.resolve(error_queue)
        self._before: dict[str, QueueReading] = {}
        self._failed: Counter[str] = Counter()
        self._failed_at: object = None

    def read(self) -> list[WatchedQueue]:
        failing, failed = failing_queues(self._transport), self._count_failed()
        rows = []
        for figures in self._transport.status(*self._queues):
            queue = figures.queue
            now = QueueReading(time.monotonic(), figures, self._transport.issued(queue))
            in_error_queue = None if failed is None or queue == self._error_queue.canonical else failed[queue]
            number = in_error_queue if figures.failed is None else figures.failed
            rows.append(WatchedQueue(figures, rates(self._before.get(queue), now), number, failing.get(queue)))
            self._before[queue] = now
        return rows

    def _count_failed(self) -> Counter[str] | None:
        """Messages of the error queue by the queue in which they failed; None if it cannot be read."""
        try:
            (status,) = self._transport.status(self._error_queue)
            state = (status.pending, self._transport.issued(self._error_queue))
            # Its headers are read again only after it has changed.
            if state != self._failed_at:
                self._failed.clear()
                for group, number in self._transport.failed.count_by(self._error_queue).counts:
                    if (queue := self._failed_in(group.failed_queue)) is not None:
                        self._failed[queue.canonical] += number
                self._failed_at = state
        except QueuePipelineError:
            return None
        return self._failed

    def _failed_in(self, address: str | None) -> QueueTable | None:
        try:
            return None if address is None else self._transport.resolve(address)
        except AddressError:
            return None


def watch(session: Session, queues: Sequence[str], every: float) -> None:
    """Show queues again and again until Ctrl-C."""
    with session.transport() as transport:
        reader = _QueueReader(transport, queues, session.error_queue)
        with contextlib.suppress(KeyboardInterrupt), _screen(session, every) as show:
            while True:
                show(reader.read())
                time.sleep(every)


def failing_queues(transport: QueueTransport) -> dict[str, FailureCount]:
    """Queues whose attempts fail; none are known where only tables of others are installed."""
    try:
        return transport.failures.list()
    except TableNotFoundError:
        return {}


def failing_line(failing: FailureCount) -> str:
    """How long all attempts on a queue have failed, and why."""
    since = duration(failing.since_seconds)
    attempts = last_of(failing.failures, "attempt")
    return f"{failing.queue}: {attempts} failed, for {since}: {failing.last_error}"


@contextlib.contextmanager
def _screen(session: Session, every: float) -> Iterator[Callable[[Sequence[WatchedQueue]], None]]:
    """Where the figures go: on a terminal in place, else one table after the other; with --json lines of JSON."""
    if session.json:
        yield _write_json_line
        return
    shown = console()

    def write_again(rows: Sequence[WatchedQueue]) -> None:
        shown.print(*_frame(rows), sep="\n")
        flush()

    if not shown.is_terminal:
        yield write_again
        return
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    last: list[Any] = []
    hint = Text(f"every {every:g} s; Ctrl-C ends it", style="dim")
    try:
        # A screen of its own: nothing of an earlier frame stays when the terminal is resized.
        with Live(console=shown, screen=True, auto_refresh=False) as live:

            def show(rows: Sequence[WatchedQueue]) -> None:
                last[:] = _frame(rows)
                live.update(Group(*last, hint), refresh=True)

            yield show
    finally:
        shown.print(*last, sep="\n")


def _write_json_line(rows: Sequence[WatchedQueue]) -> None:
    write_lines(json.dumps({"at": datetime.now(UTC).isoformat(), "queues": [_document(row) for row in rows]}))
    flush()


def _frame(rows: Sequence[WatchedQueue]) -> list[Any]:
    from rich.text import Text

    lines = [shortened(visible(failing_line(row.failing))) or "" for row in rows if row.failing is not None]
    return [table_of(COLUMNS, [_cells(row) for row in rows], figures=COLUMNS[1:]), *map(Text, lines)]


def _cells(row: WatchedQueue) -> tuple[object, ...]:
    figures = row.figures
    return (
        figures.queue,
        figure(figures.pending, capped=figures.capped),
        *(None if rate is None else f"{rate:,.1f}" for rate in (row.rates.incoming, row.rates.outgoing)),
        duration(figures.oldest_seconds),
        *map(figure, (figures.claimed, row.failed, figures.delayed)),
    )


def _document(row: WatchedQueue) -> dict[str, Any]:
    figures, rate = row.figures, row.rates
    return {
        "queue": figures.queue,
        "pending": figures.pending,
        "capped": figures.capped,
        "in_per_second": None if rate.incoming is None else round(rate.incoming, 3),
        "out_per_second": None if rate.outgoing is None else round(rate.outgoing, 3),
        "oldest_seconds": figures.oldest_seconds,
        "claimed": figures.claimed,
        "delayed": figures.delayed,
        "failed": row.failed,
        "failed_attempts": row.failing.failures if row.failing else 0,
    }


def _held(figures: QueueStatus) -> int:
    """Messages that wait or are in work."""
    return figures.pending + (figures.claimed or 0)


def _done(figures: QueueStatus) -> int:
    return (figures.processed or 0) + (figures.failed or 0)
