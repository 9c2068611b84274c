"""`nginn`: what only queues of NGinn.MessageBus have."""

from __future__ import annotations

from dataclasses import asdict

import click

from queue_pipeline.cli.output import duration, write_json, write_lines, write_table
from queue_pipeline.cli.parameters import POSITIVE, Text, queue_argument
from queue_pipeline.cli.session import Session, pass_session, shared_options
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.layouts.nginn.queue import DEFAULT_MINUTES, require_nginn
from queue_pipeline.transport.texts import count_of

LONGEST_SHOWN = 100


@click.group()
def nginn() -> None:
    """Work with queues of NGinn.MessageBus.

    A queue is named as NGinn names it: sql://alias/Queue. Which aliases mean this database, and all other settings,
    come from --nginn or QUEUE_PIPELINE_NGINN.
    """


@nginn.command()
@queue_argument
@click.option(
    "--minutes",
    type=POSITIVE,
    metavar="N",
    default=DEFAULT_MINUTES,
    show_default=True,
    help="Compute the latency over the last N minutes.",
)
@shared_options
@pass_session
def figures(session: Session, queue: str, minutes: int) -> None:
    """Count messages by subqueue and show how long they waited.

    The latency is the average time between the moment at which a message was due and the one at which it was
    processed.
    """
    with session.transport() as transport:
        table = require_nginn(transport.resolve(queue))
        found = transport.nginn.figures(table, minutes)
    if session.json:
        write_json({"queue": table.canonical, "minutes": minutes, **asdict(found)})
        return
    latency = None if found.latency_milliseconds is None else f"{found.latency_milliseconds:,.0f} ms"
    row = (table.canonical, found.ready, found.scheduled, found.processed, found.failed, latency)
    columns = ("queue", "ready (I)", "scheduled (R)", "processed (X)", "failed (F)", "latency")
    write_table(columns, [row], figures=columns[1:])


@nginn.command()
@queue_argument
@click.option(
    "--max",
    "limit",
    type=POSITIVE,
    metavar="N",
    default=100,
    show_default=True,
    help="Maximum number of messages to list.",
)
@click.option("--after", type=int, metavar="ID", default=BEFORE_ALL, help="Only messages after this id.")
@shared_options
@pass_session
def failed(session: Session, queue: str, limit: int, after: int) -> None:
    """List messages whose attempts are used up, oldest first."""
    with session.transport() as transport:
        table = require_nginn(transport.resolve(queue))
        found = transport.nginn.failed(table, after, limit)
    if session.json:
        write_json({"queue": table.canonical, "failed": [asdict(one) for one in found]})
    elif found:
        rows = [(one.id, one.label, one.attempts, duration(one.seconds_ago), _said(one.error)) for one in found]
        write_table(("id", "label", "attempts", "ago", "error"), rows, figures=("id", "attempts", "ago"))
    else:
        write_lines(f"nothing in {table} has failed")


@nginn.command()
@queue_argument
@click.argument("ids", nargs=-1, type=int, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="All failed messages.")
@shared_options
@pass_session
def retry(session: Session, queue: str, ids: tuple[int, ...], everything: bool) -> None:
    """Retry failed messages, with all attempts again."""
    if bool(ids) == everything:
        raise ConfigurationError("say which failed messages: their ids, or --all")
    with session.transport() as transport:
        table = require_nginn(transport.resolve(queue))
        count = transport.nginn.retry_failed(table, *ids)
    _tell(session, table.canonical, "retried", count)


@nginn.command()
@queue_argument
@click.argument("ids", nargs=-1, type=int, required=True, metavar="ID...")
@shared_options
@pass_session
def discard(session: Session, queue: str, ids: tuple[int, ...]) -> None:
    """Delete failed messages for good."""
    with session.transport() as transport:
        table = require_nginn(transport.resolve(queue))
        count = transport.nginn.discard_failed(table, *ids)
    _tell(session, table.canonical, "discarded", count)


@nginn.command()
@click.argument("publisher", type=Text())
@click.argument("subscriber", type=Text())
@click.argument("message_type", type=Text(), metavar="TYPE")
@shared_options
@pass_session
def subscribe(session: Session, publisher: str, subscriber: str, message_type: str) -> None:
    """Ask PUBLISHER to send messages of TYPE to SUBSCRIBER.

    The request waits in the publisher's queue until the publisher handles it. TYPE is the full name of a class
    without its assembly; System.Object stands for everything.
    """
    with session.transport() as transport:
        transport.nginn.subscriptions.subscribe(publisher, subscriber, message_type)
    if session.json:
        write_json({"publisher": publisher, "subscriber": subscriber, "message_type": message_type, "requested": True})
    else:
        write_lines(f"asked {publisher} to send {message_type} to {subscriber}")


@nginn.command()
@click.argument("publisher", type=Text())
@click.argument("subscriber", type=Text())
@click.argument("message_type", type=Text(), metavar="TYPE")
@shared_options
@pass_session
def unsubscribe(session: Session, publisher: str, subscriber: str, message_type: str) -> None:
    """End a subscription in the table of subscriptions.

    A .NET publisher that has read the table goes on sending for up to an hour.
    """
    with session.transport() as transport:
        changed = transport.nginn.subscriptions.unsubscribe(publisher, subscriber, message_type)
    if session.json:
        write_json({"publisher": publisher, "subscriber": subscriber, "message_type": message_type, "changed": changed})
    else:
        done = f"{subscriber} gets no more {message_type} from {publisher}"
        write_lines(done if changed else f"{subscriber} has no subscription to {message_type} at {publisher}")


@nginn.command()
@click.argument("publisher", type=Text(), required=False)
@shared_options
@pass_session
def subscriptions(session: Session, publisher: str | None) -> None:
    """List subscriptions, or those at PUBLISHER."""
    with session.transport() as transport:
        found = transport.nginn.subscriptions.all(publisher)
    if session.json:
        write_json({"subscriptions": [asdict(one) for one in found]})
    elif found:
        rows = [
            (
                one.publisher,
                one.message_type,
                one.subscriber,
                "never" if one.expires_seconds is None else duration(max(0.0, one.expires_seconds)),
            )
            for one in found
        ]
        write_table(("publisher", "type", "subscriber", "expires in"), rows, figures=("expires in",))
    else:
        write_lines("there are no subscribers")


def _tell(session: Session, queue: str, verb: str, count: int) -> None:
    if session.json:
        write_json({"queue": queue, verb: count})
    else:
        write_lines(f"{verb} {count_of(count, 'message')} of {queue}")


def _said(error: str | None) -> str | None:
    """What an error says, without its frames: .NET writes them below it, a traceback of Python's above."""
    lines = error.strip().splitlines() if error else []
    if not lines:
        return None
    return lines[-1 if lines[0].startswith("Traceback ") else 0][:LONGEST_SHOWN]
