"""`errors`: listing the error queue, sending messages back to where they failed, and discarding them."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from queue_pipeline.cli.export import check_export, export_options, write_export
from queue_pipeline.cli.failed_output import (
    document,
    handy_id,
    retry_command,
    write_failed,
    write_groups,
    write_retried,
    write_takers,
    write_whole,
)
from queue_pipeline.cli.output import answer, write_json, write_lines
from queue_pipeline.cli.parameters import Text, number, options
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.session import Session, shared_options, with_session
from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.failed.failed_messages import DEFAULT_BATCH
from queue_pipeline.transport.texts import count_of
from queue_pipeline.transport.transport import QueueTransport

LISTED_MESSAGES = 20
STAYED = 1
"""The exit code when some of the chosen messages could not go back."""


class MessageNotFoundError(QueuePipelineError):
    """The error queue has no message with this id."""

    exit_code = 3


criteria = options(
    click.option("--type", "message_type", type=Text(), metavar="TYPE", help="Messages of this type."),
    click.option(
        "--exception",
        type=Text(),
        metavar="TYPE",
        help="Messages that failed with this exception; the part after the last dot is enough.",
    ),
    click.option("--from", "failed_queue", type=Text(), metavar="QUEUE", help="Messages that failed in this queue."),
)
"""Choose messages by what they have in common."""
choice = options(
    click.argument("ids", type=Text(), nargs=-1, metavar="[ID...]"),
    criteria,
    click.option("--all", "everything", is_flag=True, help="All messages in the error queue."),
    number("--batch", default=DEFAULT_BATCH, help="Messages per transaction."),
)
"""Choose messages by what they have in common, by id, or all of them."""


@click.group()
@shared_options
def errors() -> None:
    """List, retry and discard failed messages in the error queue."""


@errors.command("list")
@criteria
@number(
    "--limit", help=f"Maximum number of messages to list.  [default: {LISTED_MESSAGES}; all with --csv and --parquet]"
)
@export_options
@with_session
def list_errors(session: Session, /, limit: int | None, as_csv: bool, parquet: Path | None, **chosen: Any) -> None:
    """List failed messages, oldest first, and count those that failed alike.

    They stay in the error queue, and no lock is held. The table shows the beginning of each error; --json and
    `errors show` print all of it. --csv and --parquet write a table of all such messages with their bodies, read into
    memory first.
    """
    exports = check_export(session, as_csv, parquet)
    selection = Selection(**chosen) if any(chosen.values()) else None
    with session.transport() as transport:
        queue = transport.resolve(session.error_queue)
        if exports:
            # How many were chosen is known at the end.
            total = None if selection else lambda: transport.peek(queue, limit or 2**31 - 1)
            with progress(session, "reading", total) as on_progress:
                browsed = transport.browse_failed(queue, selection, limit, on_progress)
            write_export(browsed, parquet, headers=False)
            return
        messages = transport.failed.list(queue, selection, limit or LISTED_MESSAGES)
        groups = transport.failed.count_by(queue, selection)
    if session.json:
        counts = [{**group._asdict(), "messages": number} for group, number in groups.counts]
        totals = {"count": groups.messages, "capped": groups.capped, "groups": counts}
        listed = [document(message) for message in messages]
        write_json({"error_queue": queue.canonical, "messages": listed, **totals})
    elif messages:
        write_failed(messages)
        write_groups(groups)
        many = count_of(groups.messages, "message", " or more" if groups.capped else "")
        write_lines(f"{many} in {queue}, {len(messages):,} listed; retry with: {retry_command(session, **chosen)}")
    else:
        write_lines(f"no {'such ' if selection else ''}message is in {queue}")


@errors.command()
@click.argument("identity", type=Text(), metavar="ID")
@with_session
def show(session: Session, identity: str) -> None:
    """Show one failed message: headers, body and stack trace.

    ID is the message's own, or its row's. A binary body is shown in Base64.
    """
    with session.transport() as transport:
        queue = transport.resolve(session.error_queue)
        found = transport.failed.find(queue, identity)
    if found is None:
        raise _not_found(queue, identity)
    if session.json:
        write_json({"error_queue": queue.canonical, "message": document(found, with_body=True)})
    else:
        write_whole(found)
        to = "" if found.failed_queue else " --to QUEUE"
        write_lines(f"retry with: {retry_command(session, ids=(handy_id(found),))}{to}")


@errors.command()
@choice
@click.option(
    "--to", type=Text(), metavar="QUEUE", help="Send them to this queue instead of the queue in which they failed."
)
@with_session
def retry(session: Session, /, to: str | None, batch: int, **chosen: Any) -> None:
    """Send failed messages back to where they failed.

    Choose them by ID, by --type, --exception and --from, or --all. Headers that the failure added are removed; message
    ids and bodies stay the same. A message that cannot go back stays, and the exit code is 1.

    The command lists the runs that may take the messages. A run whose code has changed takes none of them.
    """
    selection = _selection("retry", chosen)
    with session.transport() as transport:
        queue, last = _look(session, transport, selection)
        with progress(session, "retrying", lambda: transport.failed.count(queue, selection, last)) as on_progress:
            result = transport.failed.retry(queue, selection, to, batch, on_progress, last)
        takers = transport.slots.at_work_on(result.queues)
    if session.json:
        went = [{"queue": name, "returned": number} for name, number in result.queues.items()]
        totals = {"returned": result.returned, "held": result.held, "stayed": result.skipped}
        write_json(
            {
                "error_queue": queue.canonical,
                **totals,
                "queues": went,
                "reasons": [asdict(each) for each in result.named],
                "receivers": [asdict(receiver) for receiver in takers],
            }
        )
    else:
        write_retried(result, queue.canonical)
        write_takers(takers)
    if result.skipped:
        raise click.exceptions.Exit(STAYED)


@errors.command()
@choice
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@with_session
def discard(session: Session, /, yes: bool, batch: int, **chosen: Any) -> None:
    """Delete failed messages for good.

    Choose them by ID, by --type, --exception and --from, or --all. The command shows how many there are and asks for
    confirmation.
    """
    selection = _selection("discard", chosen)
    if not yes and not _is_interactive():
        raise click.UsageError("there is no terminal to ask at, and what is discarded is gone for good; add --yes")
    discarded = 0
    with session.transport() as transport:
        queue, last = _look(session, transport, selection)
        if yes or _is_meant(transport.failed.count(queue, selection, last), queue):
            with progress(session, "discarding", lambda: transport.failed.count(queue, selection, last)) as on_progress:
                discarded = transport.failed.discard(queue, selection, batch, on_progress, last)
    answer(
        session,
        {"error_queue": queue.canonical, "discarded": discarded},
        f"discarded {count_of(discarded, 'message')} of {queue}",
    )


def _selection(verb: str, chosen: dict[str, Any]) -> Selection:
    narrow = {name: value for name, value in chosen.items() if value and name != "everything"}
    if not narrow and not chosen["everything"]:
        raise click.UsageError(f"nothing to {verb}; give ids, --type, --exception, --from or --all")
    if narrow and chosen["everything"]:
        raise click.UsageError("--all is given together with some of them; leave out one or the other")
    return Selection(**chosen)


def _look(session: Session, transport: QueueTransport, selection: Selection) -> tuple[QueueTable, int]:
    """The error queue and how far it goes now: what fails later was not meant. Ids have to be there."""
    queue = transport.resolve(session.error_queue)
    last = transport.failed.last_row_version(queue)
    for identity in transport.failed.missing(queue, selection.ids):
        raise _not_found(queue, identity)
    return queue, last


def _not_found(queue: QueueTable, identity: str) -> MessageNotFoundError:
    return MessageNotFoundError(
        f"no message {identity} is in {queue}: it was retried or discarded, or went elsewhere; "
        "see: queue-pipeline errors list"
    )


def _is_interactive() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _is_meant(number: int, queue: QueueTable) -> bool:
    words = f"discard {count_of(number, 'message')} of {queue} for good?"
    return number > 0 and click.confirm(words, err=True)
