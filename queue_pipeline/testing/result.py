"""What a transform made of messages, as plain Python values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that a transform sent, published or replied."""

    destination: str
    """The queue, or the name of the event."""
    body: Any
    """The value of a JSON body, else its text, else its bytes; None where a message has no body."""
    raw_body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    id: str
    related_to: str
    """The id of the message that it results from."""
    message_type: str | None = None
    code: int | None = None
    """The number of a reply that is nothing else."""
    delay: timedelta | None = None
    time_to_live: timedelta | None = None


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """A message that goes to the error queue: the transform, or the schema of its body, refused it."""

    id: str
    """Its message id."""
    error_type: str
    error: str
    body: Any
    """As that of a sent message."""
    raw_body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TransformResult:
    """All that becomes of the messages of a batch."""

    sends: Mapping[str, list[SentMessage]]
    """By queue; each output queue of the pipeline is there."""
    replies: list[SentMessage]
    publications: Mapping[str, list[SentMessage]]
    """By the name of the event, once however many subscribe; each event that the pipeline publishes is there."""
    failures: list[RefusedMessage]
    """In the order of the messages."""
    tables: Mapping[str, list[dict[str, Any]]]
    """The rows for own tables; what is added to one key is summed up."""
    without_outcome: int
    """How many messages are done although nothing became of them."""

    def bodies(self, queue: str) -> list[Any]:
        """The bodies that were sent to an output queue."""
        return [sent.body for sent in self.sends[queue]]


def sent_messages(ready: MessageColumns) -> list[SentMessage]:
    """Messages that are ready to be stored, as values."""
    columns = zip(ready.ids, ready.milliseconds, ready.headers, ready.bodies, strict=True)
    return [_sent(str(ready.destination), ready.delayed, *row) for row in columns]


def _sent(destination: str, delayed: bool, id_: str, milliseconds: int, header_text: str, body: bytes) -> SentMessage:
    headers = wire.decode(header_text)
    span = None if milliseconds == NEVER_EXPIRES and not delayed else timedelta(milliseconds=milliseconds)
    code = headers.get(wire.RETURN_CODE)
    return SentMessage(
        destination,
        plain_body(body),
        body,
        headers,
        id_,
        headers[wire.RELATED_TO],
        headers.get(wire.ENCLOSED_MESSAGE_TYPES),
        None if code is None else int(code),
        span if delayed else None,
        None if delayed else span,
    )


def plain_body(body: bytes) -> Any:
    """The value of a JSON body, else its text, else its bytes; None for an empty one."""
    if not body:
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return body
    try:
        return json.loads(text)
    except ValueError:
        return text
