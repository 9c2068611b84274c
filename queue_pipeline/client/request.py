"""A request as a message: its body, and the headers by which the reply finds its way back."""

from __future__ import annotations

from collections.abc import Mapping

from queue_pipeline.transport.errors import InvalidMessageError
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.bodies import Body, encoded
from queue_pipeline.transport.messages.message import OutgoingMessage, new_message

OWN = (wire.MESSAGE_ID, wire.CORRELATION_ID, wire.REPLY_TO_ADDRESS, wire.MESSAGE_INTENT)
"""Headers that relate a reply to its request; a caller must not set them."""


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
