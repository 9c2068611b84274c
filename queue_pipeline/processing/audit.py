"""Audit copies: every message that was processed, with when and by whom."""

from __future__ import annotations

from datetime import datetime

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.error_message import processing_headers
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.dialect import NEVER_EXPIRES
from queue_pipeline.transport.ready import ReadyMessages


def audit_copies(queue: str, messages: Table, started: datetime, ended: datetime, endpoint: str) -> ReadyMessages:
    """The messages as they came, for the audit queue; what is added to their headers is the same for all."""
    added = {
        wire.PROCESSING_STARTED: wire.format_timestamp(started),
        wire.PROCESSING_ENDED: wire.format_timestamp(ended),
        **processing_headers(endpoint),
    }
    headers = [_with(text, message_id, added) for text, message_id in _pairs(messages)]
    ids = messages["message_id"].to_pylist()
    return ReadyMessages(queue, False, ids, [NEVER_EXPIRES] * len(ids), headers, messages["body"].to_pylist())


def _pairs(messages: Table) -> list[tuple[str, str]]:
    return list(zip(messages["headers"].to_pylist(), messages["message_id"].to_pylist(), strict=True))


def _with(text: str, message_id: str, added: dict[str, str]) -> str:
    headers = wire.decode(text)
    headers.setdefault(wire.MESSAGE_ID, message_id)
    headers.pop(wire.FORWARD_DESTINATION, None)
    return wire.encode({**headers, **added})
