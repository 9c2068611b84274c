"""Headers as an NServiceBus endpoint writes them: of results, and of copies in the error queue."""

from __future__ import annotations

import json.encoder
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic_core import from_json

from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.benchmarks.consumers.pricing import RefusedError

ENDPOINT = "orders"
MESSAGE_TYPES = {"billing": "Shop.InvoiceRequested", "shipping": "Shop.ShipmentRequested"}

_quote = json.encoder.encode_basestring_ascii


def read_headers(text: str | bytes) -> dict[str, str]:
    """The headers of a row. Raises `RefusedError` for a text that is no JSON object."""
    try:
        headers = from_json(text, cache_strings="keys")
    except ValueError as error:
        raise RefusedError("MessageHeadersInvalid", str(error)) from None
    if not isinstance(headers, dict):
        raise RefusedError("MessageHeadersInvalid", "headers are no JSON object")
    return headers


class Envelopes:
    """Writes the headers of results; what all results of a batch have in common is encoded once."""

    def __init__(self) -> None:
        self._same = {queue: _common(message_type) for queue, message_type in MESSAGE_TYPES.items()}

    def result(self, queue: str, identity: str, related: str) -> bytes:
        """The header text of a message to a queue, with its own id and what `relate` made of its origin."""
        return f'{{"{wire.MESSAGE_ID}":"{identity}",{related},{self._same[queue]}'.encode()


def relate(headers: Mapping[str, str]) -> str:
    """The part of a result's headers that names the message it came from; the same for all of its results."""
    return (
        f'"{wire.CORRELATION_ID}":{_quote(headers[wire.CORRELATION_ID])},'
        f'"{wire.CONVERSATION_ID}":{_quote(headers[wire.CONVERSATION_ID])},'
        f'"{wire.RELATED_TO}":{_quote(headers[wire.MESSAGE_ID])}'
    )


def failed(headers: Mapping[str, str], refusal: RefusedError) -> bytes:
    """The header text of the copy in the error queue: the original headers, and where, when and why it failed."""
    copied = {wire.MESSAGE_ID: str(uuid.uuid4()), **headers}
    reason = {
        wire.FAILED_QUEUE: ENDPOINT,
        wire.TIME_OF_FAILURE: wire.format_timestamp(datetime.now(UTC)),
        wire.EXCEPTION_TYPE: refusal.error_type,
        wire.EXCEPTION_MESSAGE: str(refusal),
        wire.EXCEPTION_STACK_TRACE: f"{refusal.error_type}: {refusal}",
        wire.PROCESSING_ENDPOINT: ENDPOINT,
        wire.PROCESSING_MACHINE: wire.machine_name(),
        wire.HOST_ID: wire.host_id(),
        wire.HOST_DISPLAY_NAME: wire.machine_name(),
    }
    return wire.encode({**copied, **reason}).encode()


def _common(message_type: str) -> str:
    same = {
        wire.ENCLOSED_MESSAGE_TYPES: message_type,
        wire.MESSAGE_INTENT: "Send",
        wire.CONTENT_TYPE: "application/json",
        wire.TIME_SENT: wire.format_timestamp(datetime.now(UTC)),
        wire.ORIGINATING_ENDPOINT: ENDPOINT,
        wire.ORIGINATING_MACHINE: wire.machine_name(),
        wire.ORIGINATING_HOST_ID: wire.host_id(),
        wire.REPLY_TO_ADDRESS: ENDPOINT,
    }
    return wire.encode(same)[1:]
