"""`peek`, `show` and `status`: looking at queues without taking anything."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from queue_pipeline.cli.output import duration, write_json, write_lines, write_table
from queue_pipeline.cli.parameters import POSITIVE, any_queues_argument, queue_argument, queues_argument
from queue_pipeline.cli.rendering import body_document, write_message
from queue_pipeline.cli.session import Session, pass_session, shared_options
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.claims.failure_counts import FailureCount
from queue_pipeline.transport.errors import TableNotFoundError
from queue_pipeline.transport.peek import DEFAULT_MAX_RECORDS_TO_PEEK, Shown
from queue_pipeline.transport.status import QueueStatus

_NGINN_COLUMNS = ("processed", "failed", "latency")
_STATUS_COLUMNS = (
    "queue",
    "pending",
    "oldest",
    "expired",
    "delayed",
    "next due",
    "claimed",
    "claims",
    "abandoned",
)


@click.command()
@queues_argument
@click.option(
    "--max-records-to-peek",
    "limit",
    type=POSITIVE,
    metavar="N",
    default=DEFAULT_MAX_RECORDS_TO_PEEK,
    show_default=True,
    help="Count no further than this.",
)
@shared_options
@pass_session
def peek(session: Session, queues: tuple[str, ...], limit: int) -> None:
    """Count the messages that wait, up to a limit.

    A peek takes no lock, and takes as long on a long queue as on a short one.
    """
    with session.transport() as transport:
        tables = [transport.resolve(queue) for queue in queues]
        counts = [(table.canonical, transport.peek(table, limit)) for table in tables]
    if session.json:
        found = [{"queue": queue, "count": count, "capped": count >= limit} for queue, count in counts]
        write_json({"queues": found, "max_records_to_peek": limit})
    else:
        rows = [(queue, f"{count:,} or more" if count >= limit else f"{count:,}") for queue, count in counts]
        write_table(("queue", "waiting"), rows, figures=("waiting",))


@click.command()
@queue_argument
@click.option(
    "--max",
    "limit",
    type=POSITIVE,
    metavar="N",
    default=10,
    show_default=True,
    help="Maximum number of messages to show.",
)
@click.option("--headers", "with_headers", is_flag=True, help="Show the headers too.")
@shared_options
@pass_session
def show(session: Session, queue: str, limit: int, with_headers: bool) -> None:
    """Show the oldest messages without taking them.

    A binary body is shown in Base64. With --json the headers are always there.
    """
    with session.transport() as transport:
        table = transport.resolve(queue)
        messages = transport.show(table, limit)
    if session.json:
        write_json({"queue": table.canonical, "messages": [_document(message) for message in messages]})
        return
    for message in messages:
        remarks = ["expired"] if message.expired else []
        if message.headers is None:
            remarks.append(f"headers cannot be read: {message.raw_headers!r}")
        write_message(message.row_version, message.id, message.headers, message.body, *remarks, full=with_headers)
    if not messages:
        write_lines(f"no message waits in {table}")


@click.command()
@any_queues_argument
@shared_options
@pass_session
def status(session: Session, queues: tuple[str, ...]) -> None:
    """Show counts and ages of queues, or of all queues.

    Without arguments the command shows all queues of the schema. Ages come from the times that senders wrote into
    their messages. Claimed messages are in work. Claims whose lease expired, or that were released, count as
    abandoned until another receiver takes them over. Queues with failing attempts are listed below with the last
    error. A dash means that the table is not installed. For queues of NGinn.MessageBus the table also shows the
    processed and failed messages that they keep, and the latency of the last five minutes.
    """
    with session.transport() as transport:
        found = transport.status(*queues)
        failing = _failing(transport)
    if session.json:
        write_json({"queues": [_status_document(figures, failing.get(figures.queue)) for figures in found]})
    elif found:
        columns: tuple[str, ...] = _STATUS_COLUMNS
        rows = [_row(figures) for figures in found]
        if any(figures.processed is not None for figures in found):
            columns = (*columns, *_NGINN_COLUMNS)
            rows = [(*row, *_nginn_row(figures)) for row, figures in zip(rows, found, strict=True)]
        write_table(columns, rows, figures=columns[1:])
        for figures in found:
            if (failed := failing.get(figures.queue)) is not None:
                since = duration(failed.since_seconds)
                write_lines(
                    f"{failed.queue}: the last {failed.failures:,} attempts failed, for {since}: {failed.last_error}"
                )
    else:
        write_lines("no queue is here yet; create one with: queue-pipeline install QUEUE")


def _document(message: Shown) -> dict[str, Any]:
    headers = message.headers
    document: dict[str, Any] = {
        "id": message.id,
        "row_version": message.row_version,
        "message_id": message.id if headers is None else headers[wire.MESSAGE_ID],
        "expired": message.expired,
        "headers": headers,
    }
    if headers is None:
        document["raw_headers"] = message.raw_headers
    return document | body_document(message.body)


def _failing(transport: QueueTransport) -> dict[str, FailureCount]:
    """Queues whose attempts fail; none are known where only tables of others are installed."""
    try:
        return transport.failures.list()
    except TableNotFoundError:
        return {}


def _status_document(figures: QueueStatus, failed: FailureCount | None) -> dict[str, Any]:
    return asdict(figures) | {
        "failed_attempts": failed.failures if failed else 0,
        "last_error": failed.last_error if failed else None,
    }


def _row(figures: QueueStatus) -> tuple[object, ...]:
    due = figures.next_due_seconds
    return (
        figures.queue,
        f"{figures.pending:,}{' or more' if figures.capped else ''}",
        duration(figures.oldest_seconds),
        _figure(figures.expired),
        _figure(figures.delayed),
        "now" if due is not None and due <= 0 else duration(due),
        _figure(figures.claimed),
        _figure(figures.claims),
        _figure(figures.abandoned_claims),
    )


def _nginn_row(figures: QueueStatus) -> tuple[object, ...]:
    latency = figures.latency_milliseconds
    return (
        _figure(figures.processed),
        _figure(figures.failed),
        None if latency is None else f"{latency:,.0f} ms",
    )


def _figure(number: int | None) -> str | None:
    return None if number is None else f"{number:,}"
