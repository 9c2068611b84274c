"""`receive`: take messages off a queue and print them."""

from __future__ import annotations

from typing import Any

import click

from queue_pipeline.cli.output import flush, write_json, write_lines
from queue_pipeline.cli.parameters import POSITIVE, queue_argument
from queue_pipeline.cli.rendering import body_document, write_message
from queue_pipeline.cli.session import Session, pass_session, shared_options
from queue_pipeline.transport.messages.message import ReceivedMessage, TransactionMode
from queue_pipeline.transport.receive import Received
from queue_pipeline.transport.texts import count_of

_ASIDE = {
    "expired": "expired",
    "poisoned": "unreadable and moved to the error queue",
    "forwarded": "forwarded",
}


@click.command()
@queue_argument
@click.option(
    "--max",
    "limit",
    type=POSITIVE,
    metavar="N",
    default=1,
    show_default=True,
    help="Maximum number of messages to take.",
)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in TransactionMode]),
    default=TransactionMode.SENDS_ATOMIC_WITH_RECEIVE.value,
    show_default=True,
    help="How receiving is transactional; under unreliable a message is gone before it is printed.",
)
@shared_options
@pass_session
def receive(session: Session, queue: str, limit: int, mode: str) -> None:
    """Take the oldest messages off a queue and print them.

    They are printed with headers and whole bodies and leave the queue only after that: if printing fails, for example
    because the reader of the pipe went away, they stay in the queue.
    """
    with session.transport() as transport, transport.receive(queue, limit, TransactionMode(mode)) as batch:
        # Before the end of the block, which commits.
        _write(session, batch, keeps_failed=transport.layouts.of(batch.queue).keeps_failed)
        flush()


def _write(session: Session, batch: Received, *, keeps_failed: bool) -> None:
    if session.json:
        write_json(
            {
                "queue": batch.queue.canonical,
                "mode": batch.mode.value,
                "received": len(batch),
                "expired": batch.expired,
                "poisoned": batch.poisoned,
                "forwarded": batch.forwarded,
                "messages": [_document(message) for message in batch],
            }
        )
        return
    for message in batch:
        write_message(message.row_version, message.id, message.headers, message.body, full=True)
    words = {**_ASIDE, **({"poisoned": "failed in place"} if keeps_failed else {})}
    aside = [f"{getattr(batch, field):,} {word}" for field, word in words.items() if getattr(batch, field)]
    summary = f"received {count_of(len(batch), 'message')} from {batch.queue}"
    write_lines(f"{summary} ({', '.join(aside)})" if aside else summary)


def _document(message: ReceivedMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "row_version": message.row_version,
        "message_id": message.message_id,
        "headers": message.headers,
        **body_document(message.body),
    }
