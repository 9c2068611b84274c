"""`nginn`: what only queues of NGinn.MessageBus have."""

from __future__ import annotations

from dataclasses import asdict

import click

from queue_pipeline.cli.output import answer, answer_table, duration
from queue_pipeline.cli.parameters import Text, number, queue_argument
from queue_pipeline.cli.session import Session, shared_options, with_session
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL
from queue_pipeline.transport.layouts.nginn.queue import DEFAULT_MINUTES, require_nginn
from queue_pipeline.transport.texts import count_of

LISTED_MESSAGES = 100
LONGEST_SHOWN = 100

publisher_argument = click.argument("publisher", type=Text())
subscriber_argument = click.argument("subscriber", type=Text())
type_argument = click.argument("message_type", type=Text(), metavar="TYPE")


@click.group()
@shared_options
def nginn() -> None:
    """Work with queues of NGinn.MessageBus.

    A queue is named as NGinn names it: sql://alias/Queue. Which aliases mean this database, and all other settings,
    come from --nginn or QUEUE_PIPELINE_NGINN.
    """


@nginn.command()
@queue_argument
@number("--minutes", default=DEFAULT_MINUTES, help="Compute the latency over the last N minutes.")
@with_session
def figures(session: Session, queue: str, minutes: int) -> None:
    """Count messages by subqueue and show how long they waited.

    The latency is the average time between the moment at which a message was due and the one at which it was
    processed.
    """
    with session.transport() as transport:
        table = require_nginn(transport.resolve(queue))
        found = transport.nginn.figures(table, minutes)
    latency = None if found.latency_milliseconds is None else f"{found.latency_milliseconds:,.0f} ms"
    row = (table.canonical, found.ready, found.scheduled, found.processed, found.failed, latency)
    columns = ("queue", "ready (I)", "scheduled (R)", "processed (X)", "failed (F)", "latency")
    document = {"queue": table.canonical, "minutes": minutes, **asdict(found)}
    answer_table(session, document, columns, [row], columns[1:])


@nginn.command()
@queue_argument
@number("--max", "limit", LISTED_MESSAGES, help="Maximum number of messages to list.")
@click.option("--after", type=int, metavar="ID", default=BEFORE_ALL, help="Only messages after this id.")
@with_session
def failed(session: Session, queue: str, limit: int, after: int) -> None:
    """List messages whose attempts are used up, oldest first."""
    with session.transport() as transport:
        table = require_nginn(transport.resolve(queue))
        found = transport.nginn.failed(table, after, limit)
    rows = [(one.id, one.label, one.attempts, duration(one.seconds_ago), _said(one.error)) for one in found]
    document = {"queue": table.canonical, "failed": [asdict(one) for one in found]}
    columns, figures = ("id", "label", "attempts", "ago", "error"), ("id", "attempts", "ago")
    answer_table(session, document, columns, rows, figures, nothing=f"nothing in {table} has failed")


@nginn.command()
@queue_argument
@click.argument("ids", nargs=-1, type=int, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="All failed messages.")
@with_session
def retry(session: Session, queue: str, ids: tuple[int, ...], everything: bool) -> None:
    """Retry failed messages, with all attempts again."""
    if bool(ids) == everything:
        raise click.UsageError("say which failed messages: their ids, or --all")
    with session.transport() as transport:
        table = require_nginn(transport.resolve(queue))
        count = transport.nginn.retry_failed(table, *ids)
    document = {"queue": table.canonical, "retried": count}
    answer(session, document, f"retried {count_of(count, 'message')} of {table.canonical}")


@nginn.command()
@queue_argument
@click.argument("ids", nargs=-1, type=int, required=True, metavar="ID...")
@with_session
def discard(session: Session, queue: str, ids: tuple[int, ...]) -> None:
    """Delete failed messages for good."""
    with session.transport() as transport:
        table = require_nginn(transport.resolve(queue))
        count = transport.nginn.discard_failed(table, *ids)
    document = {"queue": table.canonical, "discarded": count}
    answer(session, document, f"discarded {count_of(count, 'message')} of {table.canonical}")


@nginn.command()
@publisher_argument
@subscriber_argument
@type_argument
@with_session
def subscribe(session: Session, **subscription: str) -> None:
    """Ask PUBLISHER to send messages of TYPE to SUBSCRIBER.

    The request waits in the publisher's queue until the publisher handles it. TYPE is the full name of a class
    without its assembly; System.Object stands for everything.
    """
    with session.transport() as transport:
        transport.nginn.subscriptions.subscribe(**subscription)
    line = "asked {publisher} to send {message_type} to {subscriber}".format(**subscription)
    answer(session, {**subscription, "requested": True}, line)


@nginn.command()
@publisher_argument
@subscriber_argument
@type_argument
@with_session
def unsubscribe(session: Session, **subscription: str) -> None:
    """End a subscription in the table of subscriptions.

    A .NET publisher that has read the table goes on sending for up to an hour.
    """
    with session.transport() as transport:
        changed = transport.nginn.subscriptions.unsubscribe(**subscription)
    done = "{subscriber} gets no more {message_type} from {publisher}"
    line = done if changed else "{subscriber} has no subscription to {message_type} at {publisher}"
    answer(session, {**subscription, "changed": changed}, line.format(**subscription))


@nginn.command()
@click.argument("publisher", type=Text(), required=False)
@with_session
def subscriptions(session: Session, publisher: str | None) -> None:
    """List subscriptions, or those at PUBLISHER."""
    with session.transport() as transport:
        found = transport.nginn.subscriptions.all(publisher)
    rows = [(one.publisher, one.message_type, one.subscriber, _expires_in(one.expires_seconds)) for one in found]
    columns = ("publisher", "type", "subscriber", "expires in")
    document = {"subscriptions": [asdict(one) for one in found]}
    answer_table(session, document, columns, rows, ("expires in",), nothing="there are no subscribers")


def _expires_in(seconds: float | None) -> str | None:
    return "never" if seconds is None else duration(max(0.0, seconds))


def _said(error: str | None) -> str | None:
    """What an error says, without its frames: .NET writes them below it, a traceback of Python's above."""
    lines = error.strip().splitlines() if error else []
    if not lines:
        return None
    return lines[-1 if lines[0].startswith("Traceback ") else 0][:LONGEST_SHOWN]
