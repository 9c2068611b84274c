"""Acknowledgements: ServiceControl learns that a message which it sent again was processed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns


def acknowledgements(messages: Table, now: datetime, endpoint: str | None = None) -> list[MessageColumns]:
    """A control message for each message that asks for one, by the queue that it goes to."""
    texts = messages["headers"]
    retried = pc.match_substring(texts, wire.RETRY_UNIQUE_MESSAGE_ID)
    by_queue: dict[str, list[dict[str, str]]] = {}
    for text in texts.filter(retried).to_pylist():
        headers = wire.decode(text)
        if is_acknowledged(headers):
            acknowledged = _headers(headers[wire.RETRY_UNIQUE_MESSAGE_ID], now, endpoint)
            by_queue.setdefault(headers[wire.RETRY_ACKNOWLEDGEMENT_QUEUE], []).append(acknowledged)
    return [_ready(queue, headers) for queue, headers in by_queue.items()]


def is_acknowledged(headers: Mapping[str, str]) -> bool:
    """Whether ServiceControl waits to hear of a message."""
    return bool(headers.get(wire.RETRY_UNIQUE_MESSAGE_ID) and headers.get(wire.RETRY_ACKNOWLEDGEMENT_QUEUE))


def _headers(unique_message_id: str, now: datetime, endpoint: str | None) -> dict[str, str]:
    headers = wire.standard_headers(endpoint=endpoint, sent_at=now)
    del headers[wire.CONTENT_TYPE]
    return {
        **headers,
        wire.RETRY_SUCCESSFUL: wire.format_timestamp(now),
        wire.RETRY_UNIQUE_MESSAGE_ID: unique_message_id,
        wire.CONTROL_MESSAGE: wire.format_bool(True),
    }


def _ready(queue: str, headers: list[dict[str, str]]) -> MessageColumns:
    ids, count = [one[wire.MESSAGE_ID] for one in headers], len(headers)
    return MessageColumns(queue, False, ids, [NEVER_EXPIRES] * count, list(map(wire.encode, headers)), [b""] * count)
