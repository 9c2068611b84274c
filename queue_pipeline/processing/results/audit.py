"""Audit copies: every message that was processed, with when and by whom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.results.acknowledgement import is_acknowledged
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


def audit_copies(
    queue: str,
    messages: Table,
    started: datetime,
    ended: datetime,
    endpoint: str,
    time_to_live: float | None = None,
) -> MessageColumns:
    """The messages as they came, for the audit queue; what is added to their headers is the same for nearly all.

    `time_to_live` is in seconds, and of the copies only.
    """
    added = {
        wire.PROCESSING_STARTED: wire.format_timestamp(started),
        wire.PROCESSING_ENDED: wire.format_timestamp(ended),
        **processing_headers(endpoint),
    }
    texts, ids = messages["headers"], messages["message_id"].to_pylist()
    headers = _add_to_all(texts.to_pylist(), _can_be_added_to(texts), ids, added)
    milliseconds = NEVER_EXPIRES if time_to_live is None else max(1, round(time_to_live * 1000))
    return MessageColumns(queue, False, ids, [milliseconds] * len(ids), headers, messages["body"].to_pylist())


def _can_be_added_to(texts: Table) -> list[bool]:
    """Which texts take new headers at their end, without a look at those that they have."""
    usual = pc.and_(pc.ends_with(texts, '"}'), pc.match_substring_regex(texts, _HAS_ID))
    return list(pc.and_not(usual, pc.match_substring_regex(texts, _HAS_MORE)).to_pylist())


def _add_to_all(texts: list[str], simply: list[bool], ids: list[str], added: Mapping[str, str]) -> list[str]:
    end = "," + wire.encode(added)[1:]
    return [
        text[:-1] + end if simple else _with(text, message_id, added)
        for text, simple, message_id in zip(texts, simply, ids, strict=True)
    ]


def _with(text: str, message_id: str, added: Mapping[str, str]) -> str:
    headers = wire.decode(text)
    headers[wire.MESSAGE_ID] = headers.get(wire.MESSAGE_ID) or message_id
    headers.pop(wire.FORWARD_DESTINATION, None)
    acknowledged = {wire.RETRY_ACKNOWLEDGEMENT_SENT: "true"} if is_acknowledged(headers) else {}
    return wire.encode({**headers, **added, **acknowledged})
