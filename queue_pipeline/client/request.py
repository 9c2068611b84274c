"""A request as a message: its body, and the headers by which the reply finds its way back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

from queue_pipeline.transport.errors import InvalidMessageError
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import OutgoingMessage, new_message

Body: TypeAlias = str | bytes | Mapping[str, Any] | Sequence[Any] | BaseModel

OWN = (wire.MESSAGE_ID, wire.CORRELATION_ID, wire.REPLY_TO_ADDRESS, wire.MESSAGE_INTENT)
"""What relates a reply to its request; a caller that set one of these would wait for ever."""


def encoded(body: Body) -> bytes:
    """Text and bytes as they are; mappings, lists and pydantic models as JSON."""
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, BaseModel):
        return body.model_dump_json().encode()
    if isinstance(body, Mapping | list | tuple):
        try:
            return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InvalidMessageError(f"the body cannot be written as JSON: {error}") from None
    raise InvalidMessageError(
        f"the body is {type(body).__name__}; give text, bytes, a mapping, a list or a pydantic model"
    )


def request_message(
    body: Body,
    *,
    endpoint: str,
    reply_to: str,
    message_type: str | None = None,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> OutgoingMessage:
    """A request whose correlation id is its own id, and whose reply is to go to `reply_to`."""
    if taken := [name for name in headers or () if name in OWN]:
        raise InvalidMessageError(
            f"header {taken[0]} of a request is the client's own, because its reply is found by it; leave it out"
        )
    return new_message(
        encoded(body),
        message_type=message_type,
        content_type=content_type,
        headers=headers,
        endpoint=endpoint,
        reply_to=reply_to,
    )
