"""Reading the messages of a claim on an NGinn queue, in the form in which those of every claim are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queue_pipeline.transport.database.dialect import Dialect
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.nginn.rows import claimed_row
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.layouts.nginn.text import without_half
from queue_pipeline.transport.queues import ClaimTables


def read_in_place(
    transaction: Transaction,
    dialect: Dialect,
    tables: ClaimTables,
    settings: NGinnSettings,
    values: Mapping[str, Any],
    *,
    body: bool = True,
) -> list[tuple[Any, ...]]:
    """Id, row version, headers, body and two more of each message; `values` are claim_id, first and last."""
    name = "nginn/claimed.read" if body else "nginn/claimed.read_headers"
    rows = transaction.rows(dialect.statement(name, queue=tables.queue, claimed=tables.claimed), **values)
    if body:
        return [claimed_row(tables.queue.canonical, row, settings) for row in rows]
    # The last column is the beginning of the text.
    beginnings = ((*row[:-1], without_half(row[-1])) for row in rows)
    found = (claimed_row(tables.queue.canonical, row, settings) for row in beginnings)
    return [(*row[:3], None, *row[4:]) for row in found]
