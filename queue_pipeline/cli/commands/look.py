"""`peek` and `show`: looking at queues without taking anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from queue_pipeline.cli.export import check_export, export_options, write_export
from queue_pipeline.cli.output import answer_table, figure, write_json, write_lines
from queue_pipeline.cli.parameters import number, queue_argument, queues_argument
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.rendering import body_document, write_message
from queue_pipeline.cli.session import Session, with_session
from queue_pipeline.transport.inspection.browsed import BrowsedMessage
from queue_pipeline.transport.transport import DEFAULT_MAX_RECORDS_TO_PEEK

SHOWN_MESSAGES = 10


@click.command()
@queues_argument
@number("--max-records-to-peek", "limit", DEFAULT_MAX_RECORDS_TO_PEEK, help="Count no further than this.")
@with_session
def peek(session: Session, queues: tuple[str, ...], limit: int) -> None:
    """Count the messages that wait, up to a limit.

    A peek takes no lock, and takes as long on a long queue as on a short one.
    """
    with session.transport() as transport:
        tables = [transport.resolve(queue) for queue in queues]
        counts = [(table.canonical, transport.peek(table, limit)) for table in tables]
    found = [{"queue": queue, "count": count, "capped": count >= limit} for queue, count in counts]
    rows = [(queue, figure(count, capped=count >= limit)) for queue, count in counts]
    answer_table(
        session, {"queues": found, "max_records_to_peek": limit}, ("queue", "waiting"), rows, figures=("waiting",)
    )


@click.command()
@queue_argument
@number(
    "--max", "limit", help=f"Maximum number of messages.  [default: {SHOWN_MESSAGES}; all with --csv and --parquet]"
)
@click.option("--headers", "with_headers", is_flag=True, help="Show the headers too.")
@export_options
@with_session
def show(
    session: Session, queue: str, limit: int | None, with_headers: bool, as_csv: bool, parquet: Path | None
) -> None:
    """Show the oldest messages without taking them.

    A body that is no text is shown in Base64. With --json the headers are always there. --csv and --parquet write a
    table of all messages, read into memory first; --headers makes each header a column of it.
    """
    exports = check_export(session, as_csv, parquet)
    with session.transport() as transport:
        table = transport.resolve(queue)
        if exports:
            with progress(session, "reading", lambda: transport.peek(table, limit or 2**31 - 1)) as on_progress:
                browsed = transport.browse(table, limit, on_progress)
            write_export(browsed, parquet, headers=with_headers)
            return
        messages = transport.show(table, limit or SHOWN_MESSAGES)
    if session.json:
        write_json({"queue": table.canonical, "messages": [_document(message) for message in messages]})
        return
    for message in messages:
        remarks = ["expired"] if message.expired else []
        if message.problem is not None:
            remarks.append(f"headers cannot be read: {message.raw_headers!r}")
        write_message(message.row_version, message.id, message.headers, message.body, *remarks, full=with_headers)
    if not messages:
        write_lines(f"no message waits in {table}")


def _document(message: BrowsedMessage) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": message.id,
        "row_version": message.row_version,
        "message_id": message.message_id,
        "expired": message.expired,
        "headers": None if message.problem is not None else message.headers,
    }
    if message.problem is not None:
        document["raw_headers"] = message.raw_headers
    return document | body_document(message.body)
