"""The copy of a message that goes to the error queue, with the headers that say why."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import OutgoingMessage
from queue_pipeline.transport.texts import shortened, storable

LONGEST_MESSAGE = 16_384
"""What the wire allows for the text of an exception, in units of UTF-16."""
_LEFT_OUT = {wire.FORWARD_DESTINATION, wire.RETRIES, wire.FIRST_LEVEL_RETRIES}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a message could not be processed."""

    error_type: str
    message: str
    stack_trace: str = ""
    inner_type: str | None = None
    source: str | None = None
    data: Mapping[str, str] = field(default_factory=dict)


def error_message(
    headers: Mapping[str, str],
    body: bytes,
    failure: Failure,
    queue: str,
    endpoint: str,
    now: datetime | None = None,
    message_id: str | None = None,
) -> OutgoingMessage:
    """The original message with where, when and why it failed; `message_id` is for messages whose headers have none."""
    kept = {name: value for name, value in headers.items() if name not in _LEFT_OUT}
    # What an earlier failure left behind would mix with the headers of this one.
    kept = {name: value for name, value in kept.items() if not name.startswith(wire.EXCEPTION_PREFIX)}
    if not kept.get(wire.MESSAGE_ID):
        kept[wire.MESSAGE_ID] = message_id or str(uuid.uuid4())
    failed = failure_headers(failure, queue, now)
    return OutgoingMessage(body, {**kept, **failed, **processing_headers(endpoint)})


def processing_headers(endpoint: str) -> dict[str, str]:
    """Who processed a message, for copies in the error and audit queues."""
    return {
        wire.PROCESSING_ENDPOINT: endpoint,
        wire.PROCESSING_MACHINE: wire.machine_name(),
        wire.HOST_ID: wire.host_id(),
        wire.HOST_DISPLAY_NAME: wire.machine_name(),
    }


def failure_headers(failure: Failure, queue: str, now: datetime | None = None) -> dict[str, str]:
    """Where, when and why a message failed."""
    # An exception without words still needs a line in a list of failures.
    message = shortened(storable(failure.message, LONGEST_MESSAGE), LONGEST_MESSAGE) or failure.error_type
    headers = {
        wire.FAILED_QUEUE: queue,
        wire.TIME_OF_FAILURE: wire.format_timestamp(now or datetime.now(UTC)),
        wire.EXCEPTION_TYPE: failure.error_type,
        wire.INNER_EXCEPTION_TYPE: failure.inner_type,
        wire.EXCEPTION_MESSAGE: message,
        wire.EXCEPTION_SOURCE: failure.source,
        wire.EXCEPTION_STACK_TRACE: failure.stack_trace or f"{failure.error_type}: {message}",
        **{wire.EXCEPTION_DATA_PREFIX + name: value for name, value in failure.data.items()},
    }
    return {storable(name): storable(value) for name, value in headers.items() if value is not None}
