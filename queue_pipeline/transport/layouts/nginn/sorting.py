"""Sorts messages by what has to be done before they are processed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.layouts.nginn.control import CONTROL_TYPES
from queue_pipeline.transport.layouts.nginn.rows import check_row
from queue_pipeline.transport.layouts.nginn.text import decode_headers, type_of
from queue_pipeline.transport.messages import headers as wire


class RowSummary(NamedTuple):
    """The columns of section `claim_messages.sort`."""

    id: int
    to_endpoint: str
    headers: str | None
    text: str | None
    now: Any


@dataclass(slots=True)
class SortedRows:
    """The rows of a batch by what has to be done with them."""

    kept: list[int] = field(default_factory=list)
    expired: list[int] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Rows that fail, with the reason: unreadable, or not forwarded."""
    foreign: list[int] = field(default_factory=list)
    control: list[int] = field(default_factory=list)
    in_sequence: dict[int, dict[str, str]] = field(default_factory=dict)
    """The headers of those among the kept that belong to a sequence."""


def sort_rows(rows: Iterable[RowSummary], queue: QueueTable, book: AddressBook | None) -> SortedRows:
    """Separate messages to work on from those that expired, cannot be read, are for another queue or the bus itself."""
    found = SortedRows()
    for row in rows:
        try:
            check_row(row.text, row.headers)
            headers = decode_headers(row.headers)
        except ValueError as error:
            found.refused.append((row.id, f"unreadable: {error}; the .NET reader would stop at this message"))
            continue
        if _is_over(headers.get(wire.NGINN_TIME_TO_LIVE), row.now):
            found.expired.append(row.id)
        elif book is not None and is_foreign(row.to_endpoint, queue, book):
            found.foreign.append(row.id)
        elif type_of(row.text) in CONTROL_TYPES:
            found.control.append(row.id)
        else:
            found.kept.append(row.id)
            if headers.get(wire.NGINN_SEQUENCE):
                found.in_sequence[row.id] = headers
    return found


def is_foreign(to_endpoint: str, queue: QueueTable, book: AddressBook) -> bool:
    """Whether a message of a queue is for another one."""
    return bool(to_endpoint.strip()) and not book.is_local(to_endpoint.strip(), queue)


def _is_over(time_to_live: str | None, now: Any) -> bool:
    """Whether a message has expired by the database's clock; a text that is no time never expires."""
    try:
        moment = datetime.strptime(time_to_live or "", "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return False
    return moment < (datetime.fromisoformat(now) if isinstance(now, str) else now)
