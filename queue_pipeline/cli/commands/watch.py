"""`status --watch`: the same figures live, with messages in and out per second."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from queue_pipeline.cli.output import console, duration, flush, table_of, write
from queue_pipeline.cli.parameters import Seconds
from queue_pipeline.cli.session import Session
from queue_pipeline.transport.claims.failure_counts import FailureCount
from queue_pipeline.transport.errors import TableNotFoundError
from queue_pipeline.transport.inspection.status import QueueStatus
from queue_pipeline.transport.transport import QueueTransport

DEFAULT_INTERVAL = 2.0
INTERVAL = Seconds(0.1, 3_600.0, "a number of seconds from 0.1 to 3600; name queues before --watch")
COLUMNS = ("queue", "waiting", "in/s", "out/s", "oldest", "in work", "delayed", "failed", "failed attempts")


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


def rates(before: QueueReading | None, now: QueueReading) -> Rates:
    """What happened between two samples. A queue that was purged or made anew meanwhile counts as nothing."""
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


def watch(session: Session, queues: Sequence[str], every: float) -> None:
    """Show queues again and again until Ctrl-C."""
    last: dict[str, QueueReading] = {}
    with session.transport() as transport, _screen(session) as show:
        while True:
            failing = failing_queues(transport)
            rows = []
            for figures in transport.status(*queues):
                now = QueueReading(time.monotonic(), figures, transport.issued(figures.queue))
                rows.append((figures, rates(last.get(figures.queue), now), failing.get(figures.queue)))
                last[figures.queue] = now
            show(rows)
            time.sleep(every)


def failing_queues(transport: QueueTransport) -> dict[str, FailureCount]:
    """Queues whose attempts fail; none are known where only tables of others are installed."""
    try:
        return transport.failures.list()
    except TableNotFoundError:
        return {}


Row = tuple[QueueStatus, Rates, FailureCount | None]


@contextmanager
def _screen(session: Session) -> Iterator[Callable[[Sequence[Row]], None]]:
    """Where the figures go: a table in place on a terminal, else one after the other; lines of JSON. Ctrl-C ends it."""

    def write_line(rows: Sequence[Row]) -> None:
        write(json.dumps({"at": datetime.now(UTC).isoformat(), "queues": [_document(*row) for row in rows]}) + "\n")
        flush()

    def write_again(rows: Sequence[Row]) -> None:
        shown.print(_table(rows))
        flush()

    try:
        if session.json:
            yield write_line
            return
        shown = console()
        if not shown.is_terminal:
            yield write_again
            return
        from rich.live import Live

        with Live(console=shown, auto_refresh=False) as live:
            yield lambda rows: live.update(_table(rows), refresh=True)
    except KeyboardInterrupt:
        return


def _table(rows: Sequence[Row]) -> Any:
    return table_of(COLUMNS, [_cells(*row) for row in rows], figures=COLUMNS[1:])


def _cells(figures: QueueStatus, rate: Rates, failed: FailureCount | None) -> tuple[object, ...]:
    return (
        figures.queue,
        f"{figures.pending:,}{' or more' if figures.capped else ''}",
        None if rate.incoming is None else f"{rate.incoming:,.1f}",
        None if rate.outgoing is None else f"{rate.outgoing:,.1f}",
        duration(figures.oldest_seconds),
        None if figures.claimed is None else f"{figures.claimed:,}",
        None if figures.delayed is None else f"{figures.delayed:,}",
        None if figures.failed is None else f"{figures.failed:,}",
        f"{failed.failures:,}" if failed else "0",
    )


def _document(figures: QueueStatus, rate: Rates, failed: FailureCount | None) -> dict[str, Any]:
    return {
        "queue": figures.queue,
        "pending": figures.pending,
        "capped": figures.capped,
        "in_per_second": None if rate.incoming is None else round(rate.incoming, 3),
        "out_per_second": None if rate.outgoing is None else round(rate.outgoing, 3),
        "oldest_seconds": figures.oldest_seconds,
        "claimed": figures.claimed,
        "delayed": figures.delayed,
        "failed": figures.failed,
        "failed_attempts": failed.failures if failed else 0,
    }


def _held(figures: QueueStatus) -> int:
    """Messages that wait or are in work."""
    return figures.pending + (figures.claimed or 0)


def _done(figures: QueueStatus) -> int:
    return (figures.processed or 0) + (figures.failed or 0)
