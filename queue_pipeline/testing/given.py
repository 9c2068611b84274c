"""Messages as a test writes them, and the rows that a pipeline would read."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.bodies import Body, encoded
from queue_pipeline.transport.messages.message import OutgoingMessage, new_message

Given: TypeAlias = Body | OutgoingMessage


def message(
    body: Body,
    *,
    id: str | None = None,
    message_type: str | None = None,
    reply_to: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> OutgoingMessage:
    """A message for `run_transform` or for a queue, with the headers that a sender writes; `headers` adds to them."""
    own = {} if id is None else {wire.MESSAGE_ID: id}
    return new_message(encoded(body), message_type=message_type, reply_to=reply_to, headers={**own, **(headers or {})})


def stored_rows(given: Iterable[Given]) -> list[tuple[str, int, str, bytes, None, None]]:
    """Messages as the rows of a claim; row ids depend on the position only, so that ids of results are stable."""
    rows = []
    for at, one in enumerate(given, 1):
        sent = one if isinstance(one, OutgoingMessage) else message(one)
        rows.append((str(uuid.UUID(int=at)), at, wire.encode(sent.headers), bytes(sent.body), None, None))
    return rows
