"""Bulk sending: any number of messages in one transaction and in bounded memory, all of them or none."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

from queue_pipeline.cli.failures import say
from queue_pipeline.cli.jsonl import read_lines
from queue_pipeline.cli.progress import Reached
from queue_pipeline.errors import InvalidMessageError
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import OutgoingMessage
from queue_pipeline.transport.texts import count_of
from queue_pipeline.transport.transport import Queue, QueueTransport

CHUNK_MESSAGES = 5_000
CHUNK_BYTES = 16 * 1024 * 1024
_NAMED_LINES = 5
_SPOOL_IN_MEMORY = 4 * 1024 * 1024


class BadLinesError(InvalidMessageError):
    """Lines of a file that are no messages; nothing of the file was sent."""


def send_all(transport: QueueTransport, queue: Queue, messages: Iterable[OutgoingMessage], on_progress: Reached) -> int:
    """Send in one transaction: a failure at any point leaves nothing behind. Returns how many were sent."""
    table = transport.resolve(queue)
    sent = 0
    with transport.transaction() as transaction:
        for chunk in chunks(messages):
            sent += transport.send(table, chunk, transaction)
            on_progress(sent)
    return sent


def chunks(messages: Iterable[OutgoingMessage]) -> Iterator[list[OutgoingMessage]]:
    """Cut by number and by size, and before a message id that is already in the chunk.

    The transport sends one copy of messages with the same id in one call; here each is a message of its own.
    """
    chunk: list[OutgoingMessage] = []
    ids: set[str] = set()
    size = 0
    for message in messages:
        identity = message.headers.get(wire.MESSAGE_ID, "")
        if chunk and (len(chunk) >= CHUNK_MESSAGES or size >= CHUNK_BYTES or identity in ids):
            yield chunk
            chunk, ids, size = [], set(), 0
        chunk.append(message)
        ids.add(identity)
        size += len(message.body)
    if chunk:
        yield chunk


@contextlib.contextmanager
def rewindable(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """A file that can be read twice: itself, or a temporary copy of a pipe or of the rest of a redirected file."""
    if file.seekable() and file.tell() == 0:
        yield file
        return
    with tempfile.SpooledTemporaryFile(_SPOOL_IN_MEMORY) as spool:
        shutil.copyfileobj(file, spool)
        yield spool


def check_lines(file: IO[bytes], name: str, on_progress: Reached, *, skip_bad: bool) -> tuple[int, int]:
    """Read a whole file before anything is sent; returns how many lines are good and how many bad.

    Bad lines are an error that names the first few, or with `skip_bad` a warning each.
    """
    good = 0
    bad: list[str] = []
    bad_count = 0
    for line in read_lines(file):
        if line.content is not None:
            good += 1
            if good % CHUNK_MESSAGES == 0:
                on_progress(good)
            continue
        bad_count += 1
        if skip_bad:
            say("warning", f"{name}, line {line.number} skipped: {line.reason}")
        elif bad_count <= _NAMED_LINES:
            bad.append(f"line {line.number}: {line.reason}")
    if bad_count and (not skip_bad or not good):
        more = f"; and {count_of(bad_count - len(bad), 'more bad line')}" if bad_count > len(bad) else ""
        words = "no line is a message" if skip_bad else f"{'; '.join(bad)}{more}"
        advice = "correct the file" if skip_bad else "correct the file, or send the rest with --skip-bad"
        raise BadLinesError(f"{name}, {words}; nothing was sent: {advice}")
    return good, bad_count


def good_messages(file: IO[bytes], name: str, *, skip_bad: bool) -> Iterator[OutgoingMessage]:
    """The messages of a checked file; a line that has gone bad since then undoes the whole."""
    for line in read_lines(file):
        if line.content is not None:
            yield line.content.message()
        elif not skip_bad:
            raise BadLinesError(f"{name}, line {line.number}: {line.reason}; nothing was sent")
