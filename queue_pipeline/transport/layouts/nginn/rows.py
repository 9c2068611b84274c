"""Converts messages to NGinn rows, and rows to messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from queue_pipeline.errors import InvalidMessageError
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES, Row
from queue_pipeline.transport.failed.failed_message import first_type
from queue_pipeline.transport.layouts.nginn.endpoint import LONGEST_ENDPOINT, is_endpoint
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.layouts.nginn.text import (
    decode_headers,
    encode_headers,
    is_writable,
    to_ascii,
    type_of,
    typed_body,
)
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import ReceivedMessage

LONGEST_LABEL = 100
LONGEST_CORRELATION = 100
LONGEST_UNIQUE = 40
_NAMESPACE = uuid.UUID("6f6e2d6c-5b1b-5f0a-9c6e-0d1f6b7a4c21")

# Columns keep these, or readers fill them in: they must not be among the headers.
_NOT_WRITTEN = {
    wire.NGINN_RETRY_COUNT,
    wire.NGINN_DELIVER_AT,
    wire.NGINN_LABEL,
    wire.NGINN_CORRELATION_ID,
    wire.NGINN_BUS_MESSAGE_ID,
    wire.NGINN_CONTENT_TYPE,
    wire.NGINN_EXCLUSION_ID,
    wire.NGINN_PRIORITY,
}
_KEPT = (wire.CONVERSATION_ID, wire.RELATED_TO)
"""The headers of NServiceBus that are written: they name the cause of a message."""


class StoredRow(NamedTuple):
    """A row as section `claim_messages.read` and its like return it."""

    id: int
    unique_id: str | None
    from_endpoint: str
    to_endpoint: str
    correlation_id: str | None
    label: str | None
    retry_count: int
    sent_milliseconds: int | None
    """None where the column holds no moment."""
    headers: str | None
    text: str | None


def written(rows: Iterable[Row], table: QueueTable, settings: NGinnSettings) -> Iterator[Row]:
    """Rows for an NGinn table: the headers become a JSON text of its columns, the body gets its type."""
    for row in rows:
        headers = wire.decode(row.headers)
        text = _body(row, headers, table, settings)
        yield row._replace(headers=_columns(row, headers, text, table, settings), body=text.encode("ascii"))


def _columns(row: Row, headers: dict[str, str], body: str, table: QueueTable, settings: NGinnSettings) -> str:
    subject = _subject(headers, table)
    kept = {
        name: value
        for name, value in headers.items()
        if name not in _NOT_WRITTEN and _is_own(name) and (name not in _KEPT or is_writable(value))
    }
    reply_to = headers.get(wire.REPLY_TO_ADDRESS)
    sender = reply_to if is_endpoint(reply_to) else settings.endpoint
    if not sender:
        raise InvalidMessageError(
            f"{subject}: NGinn needs the endpoint of its sender, in the form sql://alias/Queue; name one that its "
            "receivers know, as `endpoint` in the settings of NGinn queues"
        )
    text = encode_headers(kept, subject)
    columns = {
        "from": _within(sender, LONGEST_ENDPOINT, "its sender", subject),
        "to": _within(table.canonical, LONGEST_ENDPOINT, "its destination", subject),
        "correlation": _correlation(headers, subject),
        "label": (headers.get(wire.NGINN_LABEL) or _full_name(body))[:LONGEST_LABEL],
        "headers": text,
        "expires": _before_expiry(text),
        "unique": unique_id(headers.get(wire.MESSAGE_ID) or row.id),
    }
    if headers.get(wire.NGINN_PRIORITY, "").lower() == "high":
        columns["high"] = "yes"
    return json.dumps({name: value for name, value in columns.items() if value is not None})


def _is_own(name: str) -> bool:
    """Whether a header is written unchanged: headers of programs, and the two in `_KEPT`."""
    return name in _KEPT or not name.startswith(wire.RESERVED_PREFIXES)


def _before_expiry(headers: str) -> str:
    """The text before the expiry time, which the statement appends to the headers."""
    return f"{'|' if headers else ''}{wire.NGINN_TIME_TO_LIVE}="


def _body(row: Row, headers: dict[str, str], table: QueueTable, settings: NGinnSettings) -> str:
    kind = first_type(headers.get(wire.ENCLOSED_MESSAGE_TYPES))
    return typed_body(row.body, settings.dotnet_type(kind) if kind else None, _subject(headers, table))


def _correlation(headers: dict[str, str], subject: str) -> str | None:
    """The correlation id; None if it is only the message's own id or that of its cause.

    An NGinn saga ignores a message without a correlation id, and fails on an unknown one.
    """
    if given := headers.get(wire.NGINN_CORRELATION_ID):
        return _within(given, LONGEST_CORRELATION, "its correlation id", subject)
    found = headers.get(wire.CORRELATION_ID)
    if not found or found in (headers.get(wire.MESSAGE_ID), headers.get(wire.RELATED_TO)):
        return None
    return _fitting(found, LONGEST_CORRELATION)


def _within(value: str | None, longest: int, what: str, subject: str) -> str | None:
    if value is None:
        return None
    if len(value) > longest:
        raise InvalidMessageError(f"{subject}: {what} has {len(value)} characters, and the column holds {longest}")
    if not value.isascii():
        raise InvalidMessageError(f"{subject}: {what} holds characters beyond ASCII, which the column may lose")
    return value


def unique_id(message_id: str) -> str:
    """A message's id as the column for it holds it: the digits of a GUID, else the id itself if it fits."""
    try:
        return uuid.UUID(message_id).hex
    except ValueError:
        return _fitting(message_id, LONGEST_UNIQUE)


def _fitting(identity: str, longest: int) -> str:
    """An id of another system: unchanged if the column holds it, else a GUID derived from it."""
    fits = len(identity) <= longest and identity.isascii()
    return identity if fits else uuid.uuid5(_NAMESPACE, identity).hex


def _full_name(body: str) -> str:
    """The type of a body without its assembly, which the reference writes as the label."""
    return (type_of(body) or "").partition(",")[0].strip()


def _subject(headers: dict[str, str], table: QueueTable) -> str:
    return f"message {headers.get(wire.MESSAGE_ID, '(no id)')} for {table.canonical}"


def row_id(queue: str, row: StoredRow) -> str:
    """The id of a row among all rows of all queues: the same however often it is read."""
    return str(uuid.uuid5(_NAMESPACE, f"{queue}/{row.id}/{row.unique_id or ''}"))


def message_headers(queue: str, row: StoredRow, settings: NGinnSettings) -> dict[str, str]:
    """What is known of a row, as headers; a ValueError says why no reader could read it."""
    check_row(row.text, row.headers)
    # A sender must not set what only this side sets, such as the type.
    own = {name: value for name, value in decode_headers(row.headers).items() if _is_own(name)}
    dotnet_type = type_of(row.text)
    headers = {
        wire.MESSAGE_ID: row.unique_id or row_id(queue, row),
        wire.CORRELATION_ID: row.correlation_id,
        wire.REPLY_TO_ADDRESS: own.get(wire.NGINN_REPLY_TO) or row.from_endpoint,
        wire.ORIGINATING_ENDPOINT: row.from_endpoint,
        wire.ENCLOSED_MESSAGE_TYPES: settings.type_of(dotnet_type),
        wire.CONTENT_TYPE: "application/json",
        wire.TIME_SENT: _sent(row.sent_milliseconds),
        **own,
        wire.NGINN_LABEL: row.label,
        wire.NGINN_BUS_MESSAGE_ID: str(row.id),
        wire.NGINN_CORRELATION_ID: row.correlation_id,
        wire.NGINN_RETRY_COUNT: str(row.retry_count),
        wire.RETRIES: str(row.retry_count) if row.retry_count else None,
    }
    return {name: value for name, value in headers.items() if value is not None}


def _sent(milliseconds: int | None) -> str | None:
    """The time of sending; None for a year that datetime does not hold."""
    if milliseconds is None:
        return None
    try:
        return wire.format_timestamp(datetime.fromtimestamp(milliseconds / 1000, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def check_row(text: str | None, headers: str | None) -> None:
    """A ValueError says why no reader could read the texts of a row."""
    if text is None:
        raise ValueError("msg_text is NULL")
    wire.check_unicode(text, "the characters of msg_text")
    wire.check_unicode(headers or "", "the characters of msg_headers")


def received(queue: str, row: StoredRow, settings: NGinnSettings) -> ReceivedMessage:
    """A row as a message; a ValueError says why no reader could read it."""
    headers = message_headers(queue, row, settings)
    return ReceivedMessage(row_id(queue, row), row.id, headers, (row.text or "").encode())


def claimed_row(queue: str, values: Sequence[Any], settings: NGinnSettings) -> tuple[Any, ...]:
    """A row as the columns of every claimed message: id, row version, headers, body, and two of version 1."""
    row = StoredRow(*values)
    try:
        text = wire.encode(message_headers(queue, row, settings))
    except ValueError as error:
        text = f"{wire.UNREADABLE}{error}"
    return row_id(queue, row), row.id, text, (row.text or "").encode(errors="replace"), None, None


def forwarded_row(row: StoredRow) -> Row:
    """A row on its way to another NGinn table: everything but its id, its times and its count of retries is kept."""
    columns = {
        "from": row.from_endpoint,
        "to": row.to_endpoint,
        "correlation": row.correlation_id,
        "label": row.label,
        "headers": row.headers or "",
        "expires": _before_expiry(row.headers or ""),
        "unique": row.unique_id,
    }
    text = json.dumps({name: value for name, value in columns.items() if value is not None})
    return Row(str(uuid.uuid4()), NEVER_EXPIRES, text, to_ascii(row.text or "").encode())
