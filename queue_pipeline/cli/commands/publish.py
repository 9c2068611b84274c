"""`publish`: an event for everybody who subscribed to it."""

from __future__ import annotations

from typing import IO, Any

import click
from pydantic import ValidationError

from queue_pipeline.cli.jsonl import MessageLine, reason
from queue_pipeline.cli.output import write_json, write_lines
from queue_pipeline.cli.parameters import TIME_TO_LIVE, Header, Text
from queue_pipeline.cli.session import Session, pass_session, shared_options
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.event import Event
from queue_pipeline.transport.words import count_of


@click.command()
@click.argument("event", type=Text(), metavar="EVENT")
@click.option("--body", metavar="TEXT", help="The body.")
@click.option("--body-file", type=click.File("rb"), metavar="FILE|-", help="The body, byte for byte.")
@click.option(
    "--parent",
    "parents",
    type=Text(),
    multiple=True,
    metavar="NAME",
    help="A base class or interface of EVENT; repeatable.",
)
@click.option("--interface", is_flag=True, help="EVENT is an interface, so it has no base class System.Object.")
@click.option("--header", "headers", type=Header(), multiple=True, metavar="NAME=VALUE", help="A header; repeatable.")
@click.option("--ttl", type=TIME_TO_LIVE, metavar="SECONDS", help="Discard after this time; at most 24 days.")
@click.option("--content-type", type=Text(), metavar="TYPE", help="Default: application/json.")
@shared_options
@pass_session
def publish(
    session: Session,
    /,
    event: str,
    body: str | None,
    body_file: IO[bytes] | None,
    parents: tuple[str, ...],
    interface: bool,
    headers: tuple[tuple[str, str], ...],
    **fields: Any,
) -> None:
    """Publish an event of the .NET type EVENT, a copy for each subscriber, all of them or none.

    Its base classes and interfaces are known to .NET only: name those that somebody may have subscribed to.
    """
    if (body is None) is (body_file is None):
        raise click.UsageError("give either --body or --body-file")
    typed = body.encode("utf-8", "surrogateescape") if body is not None else b""
    content = body_file.read() if body_file is not None else typed
    named = {name: value for name, value in fields.items() if value is not None}
    try:
        message = MessageLine(body=content, headers=dict(headers), **named).message()
    except ValidationError as error:
        raise click.UsageError(reason(error)) from None
    declared = Event(event, parents, interface=interface)
    with session.transport() as transport:
        copies = transport.publish(declared, message)
    identity = message.headers[wire.MESSAGE_ID]
    if session.json:
        write_json({"event": declared.name, "message_id": identity, "copies": copies})
    else:
        write_lines(f"published {declared.name} as message {identity} to {count_of(copies, 'subscriber')}")
