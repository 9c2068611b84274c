"""`receive`: take messages off a queue and print them."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from queue_pipeline.cli.output import flush, is_terminal, write_json, write_lines
from queue_pipeline.cli.parameters import number, queue_argument
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.rendering import body_document, write_message
from queue_pipeline.cli.session import Session, with_session
from queue_pipeline.transport.messages.message import ReceivedMessage, TransactionMode
from queue_pipeline.transport.receive import Received
from queue_pipeline.transport.texts import count_of


@click.command()
@queue_argument
@number("--max", "limit", 1, help="Maximum number of messages to take.")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in TransactionMode]),
    default=TransactionMode.SENDS_ATOMIC_WITH_RECEIVE.value,
    show_default=True,
    help="How receiving is transactional; under unreliable a message is gone before it is printed.",
)
@with_session
def receive(session: Session, queue: str, limit: int, mode: str) -> None:
    """Take the oldest messages off a queue and print them.

    They are printed with headers and whole bodies and leave the queue only after that: if printing fails, for example
    because the reader of the pipe went away, they stay in the queue.
    """
    with session.transport() as transport, contextlib.ExitStack() as received:
        with progress(session, "receiving"):
            batch = received.enter_context(transport.receive(queue, limit, TransactionMode(mode)))
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
    # On a terminal the messages themselves show how far it is.
    bar = contextlib.nullcontext() if is_terminal() else progress(session, "writing", len(batch))
    with bar as on_progress:
        for done, message in enumerate(batch, 1):
            write_message(message.row_version, message.id, message.headers, message.body, full=True)
            if on_progress is not None and done % 100 == 0:
                on_progress(done)
    poisoned = "failed in place" if keeps_failed else "unreadable and moved to the error queue"
    counts = {"expired": batch.expired, poisoned: batch.poisoned, "forwarded": batch.forwarded}
    aside = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    summary = f"received {count_of(len(batch), 'message')} from {batch.queue}"
    write_lines(f"{summary} ({aside})" if aside else summary)


def _document(message: ReceivedMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "row_version": message.row_version,
        "message_id": message.message_id,
        "headers": message.headers,
        **body_document(message.body),
    }
