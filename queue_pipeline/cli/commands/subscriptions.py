"""`subscribe`, `unsubscribe` and `subscriptions`: which endpoint gets which events."""

from __future__ import annotations

import contextlib
from dataclasses import asdict

import click

from queue_pipeline.cli.output import write_json, write_lines, write_table
from queue_pipeline.cli.parameters import Queue, Text
from queue_pipeline.cli.session import Session, pass_session, shared_options
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.errors import AccessDeniedError
from queue_pipeline.transport.messages.event import full_name

endpoint_argument = click.argument("endpoint", type=Text(), metavar="ENDPOINT")
topic_argument = click.argument("topic", type=Text(), metavar="TOPIC")


@click.command()
@endpoint_argument
@topic_argument
@click.option(
    "--queue", type=Queue(), metavar="ADDRESS", help="The queue that events go to. Default: the endpoint's own queue."
)
@shared_options
@pass_session
def subscribe(session: Session, endpoint: str, topic: str, queue: str | None) -> None:
    """Subscribe ENDPOINT to the events of TOPIC.

    A topic is the full name of a .NET type: of an event, or of a base class or interface of events. An endpoint
    that is subscribed with another address moves to this one. Publishers notice within five seconds.
    """
    with session.transport() as transport:
        table = transport.resolve(QueueAddress(endpoint) if queue is None else queue)
        # A subscriber without a queue would keep everybody from publishing; who may only send cannot look.
        with contextlib.suppress(AccessDeniedError):
            transport.peek(table, 1)
        changed = transport.subscriptions.subscribe(endpoint, topic, table)
    if session.json:
        write_json({"endpoint": endpoint, "topic": full_name(topic), "queue": table.canonical, "changed": changed})
    elif changed:
        write_lines(f"subscribed {endpoint} to {full_name(topic)}, at {table}")
    else:
        write_lines(f"{endpoint} is subscribed to {full_name(topic)} already, at {table}")


@click.command()
@endpoint_argument
@topic_argument
@shared_options
@pass_session
def unsubscribe(session: Session, endpoint: str, topic: str) -> None:
    """Stop sending the events of TOPIC to ENDPOINT.

    An endpoint that subscribes when it starts does so again at its next start.
    """
    with session.transport() as transport:
        changed = transport.subscriptions.unsubscribe(endpoint, topic)
    name = full_name(topic)
    if session.json:
        write_json({"endpoint": endpoint, "topic": name, "changed": changed})
    else:
        write_lines(f"unsubscribed {endpoint} from {name}" if changed else f"{endpoint} is not subscribed to {name}")


@click.command()
@click.option("--topic", type=Text(), metavar="NAME", help="Only the subscriptions of this topic.")
@shared_options
@pass_session
def subscriptions(session: Session, topic: str | None) -> None:
    """List subscriptions: which endpoint receives which events."""
    with session.transport() as transport:
        found = transport.subscriptions.list(topic)
    if session.json:
        write_json({"subscriptions": [asdict(each) for each in found]})
    elif found:
        write_table(("endpoint", "topic", "queue"), [(each.endpoint, each.topic, each.queue) for each in found])
    else:
        write_lines(f"there are no subscribers{f' to {full_name(topic)}' if topic else ''}")
