"""What makes a message an event."""

from __future__ import annotations

from dataclasses import replace

from queue_pipeline.errors import InvalidMessageError
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.event import Event
from queue_pipeline.transport.messages.message import OutgoingMessage

INTENT = "Publish"
NO_DELAY = "an event cannot be delayed; send a delayed message to yourself, and publish when it arrives"


def published(event: Event, message: OutgoingMessage) -> OutgoingMessage:
    """A message as an event: with its types in the headers."""
    if message.delay is not None:
        raise InvalidMessageError(f"event {event.name}: {NO_DELAY}")
    types = {wire.MESSAGE_INTENT: INTENT, wire.ENCLOSED_MESSAGE_TYPES: event.enclosed_types}
    return replace(message, headers={**message.headers, **types})
