"""The copy of a message that goes to the error queue, with the headers that tell why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.messages import OutgoingMessage

LONGEST_MESSAGE = 16_384


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a message could not be processed."""

    error_type: str
    message: str
    stack_trace: str = ""


def error_message(
    headers: Mapping[str, str], body: bytes, failure: Failure, queue: str, endpoint: str, now: datetime | None = None
) -> OutgoingMessage:
    """The original body and headers, with where, when and why it failed."""
    told = failure.message[:LONGEST_MESSAGE]
    reasons = {
        wire.FAILED_QUEUE: queue,
        wire.TIME_OF_FAILURE: wire.format_timestamp(now or datetime.now(UTC)),
        wire.EXCEPTION_TYPE: failure.error_type,
        wire.EXCEPTION_MESSAGE: told,
        wire.EXCEPTION_STACK_TRACE: failure.stack_trace or f"{failure.error_type}: {told}",
        **processing_headers(endpoint),
    }
    return OutgoingMessage(body, {**headers, **reasons})


def processing_headers(endpoint: str) -> dict[str, str]:
    """Who processed a message, for copies in the error and audit queues."""
    return {
        wire.PROCESSING_ENDPOINT: endpoint,
        wire.PROCESSING_MACHINE: wire.machine_name(),
        wire.HOST_ID: wire.host_id(),
        wire.HOST_DISPLAY_NAME: wire.machine_name(),
    }
