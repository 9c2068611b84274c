"""`subscribe`, `unsubscribe` and `subscriptions`: which endpoint gets which events."""

from __future__ import annotations

import contextlib
from dataclasses import asdict

import click

from queue_pipeline.cli.output import answer, answer_table
from queue_pipeline.cli.parameters import Text
from queue_pipeline.cli.session import Session, with_session
from queue_pipeline.errors import AccessDeniedError
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.messages.event import full_name

endpoint_argument = click.argument("endpoint", type=Text(), metavar="ENDPOINT")
topic_argument = click.argument("topic", type=Text(), metavar="TOPIC")


@click.command()
@endpoint_argument
@topic_argument
@click.option(
    "--queue", type=Text(), metavar="ADDRESS", help="The queue that events go to. Default: the endpoint's own queue."
)
@with_session
def subscribe(session: Session, endpoint: str, topic: str, queue: str | None) -> None:
    """Subscribe ENDPOINT to the events of TOPIC.

    A topic is the full name of a .NET type: of an event, or of a base class or interface of events. An endpoint
    that is subscribed with another address moves to this one. Publishers notice within five seconds.
    """
    with session.transport() as transport:
        table = transport.resolve(QueueAddress(endpoint) if queue is None else queue)
        # A subscriber without a queue would make every publish fail. An account that may only send cannot peek.
        with contextlib.suppress(AccessDeniedError):
            transport.peek(table, 1)
        changed = transport.subscriptions.subscribe(endpoint, topic, table)
    name = full_name(topic)
    done = f"subscribed {endpoint} to {name}, at {table}"
    line = done if changed else f"{endpoint} is subscribed to {name} already, at {table}"
    answer(session, {"endpoint": endpoint, "topic": name, "queue": table.canonical, "changed": changed}, line)


@click.command()
@endpoint_argument
@topic_argument
@with_session
def unsubscribe(session: Session, endpoint: str, topic: str) -> None:
    """Stop sending the events of TOPIC to ENDPOINT.

    An endpoint that subscribes when it starts does so again at its next start.
    """
    with session.transport() as transport:
        changed = transport.subscriptions.unsubscribe(endpoint, topic)
    name = full_name(topic)
    line = f"unsubscribed {endpoint} from {name}" if changed else f"{endpoint} is not subscribed to {name}"
    answer(session, {"endpoint": endpoint, "topic": name, "changed": changed}, line)


@click.command()
@click.option("--topic", type=Text(), metavar="NAME", help="Only the subscriptions of this topic.")
@with_session
def subscriptions(session: Session, topic: str | None) -> None:
    """List subscriptions: which endpoint receives which events."""
    with session.transport() as transport:
        found = transport.subscriptions.list(topic)
    rows = [(each.endpoint, each.topic, each.queue) for each in found]
    document = {"subscriptions": [asdict(each) for each in found]}
    nothing = f"there are no subscribers{f' to {full_name(topic)}' if topic else ''}"
    answer_table(session, document, ("endpoint", "topic", "queue"), rows, nothing=nothing)
