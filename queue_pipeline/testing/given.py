"""Messages as a test writes them, and the rows that a pipeline would read."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic_core import to_json

from queue_pipeline.transport.errors import InvalidMessageError
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import OutgoingMessage, new_message

Body: TypeAlias = str | bytes | Mapping[str, Any] | Sequence[Any] | BaseModel
Given: TypeAlias = Body | OutgoingMessage


def message(
    body: Body,
    *,
    id: str | None = None,
    message_type: str | None = None,
    reply_to: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> OutgoingMessage:
    """A message for `run_transform` or for a queue, with the headers that a sender writes; `headers` adds to them.

    Text and bytes are sent unchanged; mappings, lists and pydantic models become JSON.
    """
    own = {} if id is None else {wire.MESSAGE_ID: id}
    return new_message(_encoded(body), message_type=message_type, reply_to=reply_to, headers={**own, **(headers or {})})


def stored_rows(given: Iterable[Given]) -> list[tuple[str, int, str, bytes, None, None]]:
    """Messages as the rows of a claim: id, row version, headers, body, and the two columns of version 1.

    Their row ids depend on their position only, so that the ids of results stay the same from run to run.
    """
    rows = []
    for at, one in enumerate(given, 1):
        sent = one if isinstance(one, OutgoingMessage) else message(one)
        rows.append((str(uuid.UUID(int=at)), at, wire.encode(sent.headers), bytes(sent.body), None, None))
    return rows


def _encoded(body: object) -> bytes:
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, BaseModel):
        return body.model_dump_json().encode()
    if isinstance(body, Mapping | list | tuple):
        return to_json(body)
    raise InvalidMessageError(
        f"a message of the test is {type(body).__name__}; give a mapping, a list, a pydantic model, text, bytes or "
        "message(...)"
    )
