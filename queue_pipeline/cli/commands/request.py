"""`request`: send one message, wait for the reply to it, and print that."""

from __future__ import annotations

from typing import IO

import click

from queue_pipeline.cli.commands.send import body_options, required_body, type_option
from queue_pipeline.cli.output import answer
from queue_pipeline.cli.parameters import Seconds, Text, queue_argument
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.rendering import body_document, body_text, encoded_body
from queue_pipeline.cli.session import Session, with_session
from queue_pipeline.client import CallbackSettings, QueueClient
from queue_pipeline.transport.messages import headers as wire

TIMEOUT = Seconds(0.001, 24 * 3600.0, "a number of seconds above zero and at most a day")


@click.command()
@queue_argument
@body_options
@type_option
@click.option(
    "--content-type",
    type=Text(),
    metavar="TYPE",
    default="application/json",
    show_default=True,
    help="The type of the body.",
)
@click.option("--timeout", type=TIMEOUT, metavar="SECONDS", default=30.0, show_default=True, help="How long to wait.")
@click.option(
    "--endpoint",
    type=Text(),
    metavar="NAME",
    default="queue-pipeline",
    show_default=True,
    help="The endpoint that asks.",
)
@click.option(
    "--discriminator", type=Text(), metavar="NAME", help="The instance of the endpoint; default: this machine's name."
)
@click.option("--create", is_flag=True, help="Create the callback queue ENDPOINT.DISCRIMINATOR if it is missing.")
@with_session
def request(
    session: Session,
    /,
    queue: str,
    body: str | None,
    body_file: IO[bytes] | None,
    message_type: str | None,
    headers: dict[str, str],
    content_type: str,
    timeout: float,
    endpoint: str,
    discriminator: str | None,
    create: bool,
) -> None:
    """Send a request and print the reply to it: its body, or its code.

    Replies arrive in a callback queue, ENDPOINT.DISCRIMINATOR, that belongs to one process at a time: give commands
    that run at the same time discriminators of their own. `install ENDPOINT --instance DISCRIMINATOR --plain` creates
    it. Without a reply in time the exit code is 7.
    """
    content, settings = required_body("ask", body, body_file), CallbackSettings(peek_delay=0.1)
    with (
        session.transport() as transport,
        QueueClient(transport, endpoint, discriminator=discriminator, settings=settings, create=create) as client,
    ):
        with progress(session, "waiting for the reply"):
            reply = client.request(
                queue, content, timeout, message_type=message_type, headers=headers, content_type=content_type
            )
        document = {
            "queue": transport.resolve(queue).canonical,
            "message_id": reply.headers.get(wire.MESSAGE_ID),
            "type": reply.message_type,
            "code": reply.code,
            "headers": dict(reply.headers),
            **body_document(reply.body),
        }
        text = body_text(reply.body)
        shown = encoded_body(reply.body) if text is None else text or "(no body)"
        answer(session, document, shown if reply.code is None else f"code {reply.code}")
