"""What is sent about messages that were processed: copies for the audit queue, and acknowledgements of retries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.failed.error_message import processing_headers
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns

_HAS_ID = re.escape(f'"{wire.MESSAGE_ID}"') + r'\s*:\s*"[^"]'
_HAS_MORE = "|".join(
    [
        *map(re.escape, (wire.FORWARD_DESTINATION, wire.RETRY_UNIQUE_MESSAGE_ID)),
        # Copies that came back from an error or audit queue.
        *map(re.escape, (wire.PROCESSING_ENDPOINT, wire.PROCESSING_STARTED, wire.HOST_ID)),
        r":\s*null",
    ]
)


@dataclass(frozen=True)
class Confirming:
    """What the confirmations of a batch have in common; without an audit queue there are no copies."""

    endpoint: str
    started: datetime
    ended: datetime
    audit_queue: str | None = None
    audit_time_to_live: float | None = None
    """Seconds until a copy expires."""


def confirmations(messages: Table, confirming: Confirming) -> list[MessageColumns]:
    """What is sent about messages that were processed."""
    confirmed = acknowledgements(messages, confirming.ended, confirming.endpoint)
    if confirming.audit_queue is None:
        return confirmed
    return [*confirmed, audit_copies(messages, confirming, confirming.audit_queue)]


def acknowledgements(messages: Table, now: datetime, endpoint: str) -> list[MessageColumns]:
    """A control message for each message that ServiceControl sent again, by the queue that it goes to."""
    texts = messages["headers"]
    retried = pc.match_substring(texts, wire.RETRY_UNIQUE_MESSAGE_ID)
    by_queue: dict[str, list[dict[str, str]]] = {}
    for text in texts.filter(retried).to_pylist():
        headers = wire.decode(text)
        if _is_acknowledged(headers):
            acknowledged = _acknowledgement(headers[wire.RETRY_UNIQUE_MESSAGE_ID], now, endpoint)
            by_queue.setdefault(headers[wire.RETRY_ACKNOWLEDGEMENT_QUEUE], []).append(acknowledged)
    return [_columns(queue, headers) for queue, headers in by_queue.items()]


def audit_copies(messages: Table, confirming: Confirming, queue: str) -> MessageColumns:
    """The messages as they came, for the audit queue, with when and by whom they were processed."""
    added = {
        wire.PROCESSING_STARTED: wire.format_timestamp(confirming.started),
        wire.PROCESSING_ENDED: wire.format_timestamp(confirming.ended),
        **processing_headers(confirming.endpoint),
    }
    seconds = confirming.audit_time_to_live
    milliseconds = NEVER_EXPIRES if seconds is None else max(1, round(seconds * 1000))
    texts, ids = messages["headers"], messages["message_id"].to_pylist()
    # What is added is the same text for nearly all messages.
    end = "," + wire.encode(added)[1:]
    headers = [
        text[:-1] + end if simple else _with(text, message_id, added)
        for text, simple, message_id in zip(texts.to_pylist(), _can_be_added_to(texts), ids, strict=True)
    ]
    return MessageColumns(queue, False, ids, [milliseconds] * len(ids), headers, messages["body"].to_pylist())


def _is_acknowledged(headers: Mapping[str, str]) -> bool:
    return bool(headers.get(wire.RETRY_UNIQUE_MESSAGE_ID) and headers.get(wire.RETRY_ACKNOWLEDGEMENT_QUEUE))


def _acknowledgement(unique_message_id: str, now: datetime, endpoint: str) -> dict[str, str]:
    headers = wire.standard_headers(endpoint=endpoint, sent_at=now)
    del headers[wire.CONTENT_TYPE]
    return {
        **headers,
        wire.RETRY_SUCCESSFUL: wire.format_timestamp(now),
        wire.RETRY_UNIQUE_MESSAGE_ID: unique_message_id,
        wire.CONTROL_MESSAGE: wire.format_bool(True),
    }


def _columns(queue: str, headers: list[dict[str, str]]) -> MessageColumns:
    ids, count = [one[wire.MESSAGE_ID] for one in headers], len(headers)
    return MessageColumns(queue, False, ids, [NEVER_EXPIRES] * count, list(map(wire.encode, headers)), [b""] * count)


def _can_be_added_to(texts: Table) -> list[bool]:
    """Which texts take new headers at their end, without a look at those that they have."""
    usual = pc.and_(pc.ends_with(texts, '"}'), pc.match_substring_regex(texts, _HAS_ID))
    return list(pc.and_not(usual, pc.match_substring_regex(texts, _HAS_MORE)).to_pylist())


def _with(text: str, message_id: str, added: Mapping[str, str]) -> str:
    headers = wire.decode(text)
    headers[wire.MESSAGE_ID] = headers.get(wire.MESSAGE_ID) or message_id
    headers.pop(wire.FORWARD_DESTINATION, None)
    acknowledged = {wire.RETRY_ACKNOWLEDGEMENT_SENT: "true"} if _is_acknowledged(headers) else {}
    return wire.encode({**headers, **added, **acknowledged})
