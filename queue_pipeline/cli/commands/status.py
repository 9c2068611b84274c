"""`status`: counts and ages of queues, once or live."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from queue_pipeline.cli.commands.watch import DEFAULT_INTERVAL, INTERVAL, failing_line, failing_queues, watch
from queue_pipeline.cli.output import answer_table, duration, figure, write_lines
from queue_pipeline.cli.parameters import any_queues_argument
from queue_pipeline.cli.session import Session, with_session
from queue_pipeline.transport.claims.failure_counts import FailureCount
from queue_pipeline.transport.inspection.status import QueueStatus

_NGINN_COLUMNS = ("processed", "failed", "latency")
_STATUS_COLUMNS = ("queue", "pending", "oldest", "expired", "delayed", "next due", "claimed", "claims", "abandoned")


@click.command()
@any_queues_argument
@click.option(
    "--watch",
    "every",
    type=INTERVAL,
    metavar="[SECONDS]",
    is_flag=False,
    flag_value=DEFAULT_INTERVAL,
    help=f"Show messages in and out per second, again and again until Ctrl-C; every {DEFAULT_INTERVAL:g} s by default.",
)
@with_session
def status(session: Session, queues: tuple[str, ...], every: float | None) -> None:
    """Show counts and ages of queues, or of all queues.

    Without arguments the command shows all queues of the schema. Ages come from the times that senders wrote into
    their messages. Claimed messages are in work. Claims whose lease expired, or that were released, count as
    abandoned until another receiver takes them over. Queues with failing attempts are listed below with the last
    error. A dash means that the table is not installed. For queues of NGinn.MessageBus the table also shows the
    processed and failed messages that they keep, and the latency of the last five minutes.

    Name queues before --watch. --watch with --json prints one document per line.
    """
    if every is not None:
        watch(session, queues, every)
        return
    with session.transport() as transport:
        found = transport.status(*queues)
        failing = failing_queues(transport)
    columns: tuple[str, ...] = _STATUS_COLUMNS
    rows = [_row(figures) for figures in found]
    if any(figures.processed is not None for figures in found):
        columns = (*columns, *_NGINN_COLUMNS)
        rows = [(*row, *_nginn_row(figures)) for row, figures in zip(rows, found, strict=True)]
    document = {"queues": [_status_document(figures, failing.get(figures.queue)) for figures in found]}
    nothing = "no queue is here yet; create one with: queue-pipeline install QUEUE"
    answer_table(session, document, columns, rows, columns[1:], nothing)
    if not session.json:
        write_lines(*(failing_line(failing[figures.queue]) for figures in found if figures.queue in failing))


def _status_document(figures: QueueStatus, failed: FailureCount | None) -> dict[str, Any]:
    return asdict(figures) | {
        "failed_attempts": failed.failures if failed else 0,
        "last_error": failed.last_error if failed else None,
    }


def _row(figures: QueueStatus) -> tuple[object, ...]:
    due = figures.next_due_seconds
    return (
        figures.queue,
        figure(figures.pending, capped=figures.capped),
        duration(figures.oldest_seconds),
        figure(figures.expired),
        figure(figures.delayed),
        "now" if due is not None and due <= 0 else duration(due),
        figure(figures.claimed),
        figure(figures.claims),
        figure(figures.abandoned_claims),
    )


def _nginn_row(figures: QueueStatus) -> tuple[object, ...]:
    latency = figures.latency_milliseconds
    return (figure(figures.processed), figure(figures.failed), None if latency is None else f"{latency:,.0f} ms")
