"""Rows of NGinn queues in the form that every layout gives: to be sent, read in a claim, shown and browsed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from queue_pipeline.transport.addresses.queues import ClaimTables, QueueTable
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL, Dialect, Row
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.inspection.browsed import BrowsedMessage
from queue_pipeline.transport.inspection.conditions import NGINN_COLUMNS, Page, with_conditions
from queue_pipeline.transport.layouts.nginn.rows import StoredRow, claimed_row, message_headers, row_id, written
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.layouts.nginn.sorting import RowSummary, sort_rows
from queue_pipeline.transport.layouts.nginn.text import without_half
from queue_pipeline.transport.messages import headers as wire


def browsed_row(
    queue: QueueTable, row: Any, settings: NGinnSettings, *, failed: bool, with_body: bool
) -> BrowsedMessage:
    """The message of a row of section `browse`."""
    *values, now, error, milliseconds = row
    if not with_body:
        values[-1] = without_half(values[-1])
    stored = StoredRow(*values)
    body = (stored.text or "").encode(errors="replace") if with_body else b""
    found = sort_rows([RowSummary(stored.id, "", stored.headers, stored.text, now)], queue, None)
    failure = _failure(queue, error, milliseconds) if failed else {}
    try:
        headers, problem = message_headers(queue.canonical, stored, settings), None
    except ValueError as refusal:
        headers, problem = {}, str(refusal)
    identity = row_id(queue.canonical, stored)
    return BrowsedMessage(
        identity,
        stored.id,
        {**headers, **failure},
        body,
        bool(found.expired),
        problem,
        raw_headers=stored.headers or "",
    )


def _failure(queue: QueueTable, error: str | None, milliseconds: float | None) -> dict[str, str]:
    """Headers for a failure: the first line of the error column holds its type and text."""
    trace = (error or "").strip()
    kind, colon, text = trace.partition("\n")[0].strip().partition(": ")
    is_type = colon and " " not in kind
    facts = {
        wire.FAILED_QUEUE: queue.canonical,
        wire.EXCEPTION_TYPE: kind if is_type else "",
        wire.EXCEPTION_MESSAGE: text if is_type else trace.partition("\n")[0].strip(),
        wire.EXCEPTION_STACK_TRACE: trace,
    }
    if milliseconds is not None:
        moment = datetime.now(UTC) - timedelta(milliseconds=float(milliseconds))
        facts[wire.TIME_OF_FAILURE] = wire.format_timestamp(moment)
    return {name: value for name, value in facts.items() if value}


class NGinnRows:
    """Headers and types in columns, the body as text; what is due later waits in the same table."""

    def __init__(self, dialect: Dialect, settings: NGinnSettings) -> None:
        self._dialect = dialect
        self._settings = settings

    def delayed_table(self, destination: QueueTable) -> QueueTable:
        """The queue itself."""
        return destination

    def encode(
        self, transaction: Transaction, table: QueueTable, rows: Iterator[Row], *, delayed: bool
    ) -> Iterator[Row]:
        """The headers become a JSON text of the columns, the body gets its type."""
        return written(rows, table, self._settings)

    def check(self, table: QueueTable, rows: Iterator[Row]) -> None:
        """Encode every row once: a header, or a body that is no JSON object, may be refused."""
        for _ in written(rows, table, self._settings):
            pass

    def read(
        self, transaction: Transaction, tables: ClaimTables, values: Mapping[str, Any], *, body: bool = True
    ) -> Sequence[Sequence[Any]]:
        """Claimed messages in the form of NServiceBus's."""
        name = "nginn/claim_messages.read" if body else "nginn/claim_messages.read_headers"
        command = self._dialect.statement(name, queue=tables.queue, claimed=tables.claimed)
        rows: Sequence[Any] = transaction.rows(command, **values)
        queue = tables.queue.canonical
        if body:
            return [claimed_row(queue, row, self._settings) for row in rows]
        # The last column is the beginning of the text.
        beginnings = ((*row[:-1], without_half(row[-1])) for row in rows)
        found = (claimed_row(queue, row, self._settings) for row in beginnings)
        return [(*row[:3], None, *row[4:]) for row in found]

    def show(self, transaction: Transaction, queue: QueueTable, limit: int) -> Sequence[BrowsedMessage]:
        """In the order of their due times."""
        return self._browse(transaction, queue, Page(BEFORE_ALL, limit), rank="retry_time, m.row_version")

    def browse(
        self, transaction: Transaction, queue: QueueTable, page: Page, *, failed: bool
    ) -> Sequence[BrowsedMessage]:
        """A page of subqueue F, or of the messages that wait."""
        return self._browse(transaction, queue, page, failed=failed)

    def _browse(
        self,
        transaction: Transaction,
        queue: QueueTable,
        page: Page,
        *,
        failed: bool = False,
        rank: str = "row_version",
    ) -> Sequence[BrowsedMessage]:
        subqueue = "'F'" if failed else "'I'"
        command = self._dialect.statement("nginn/queue.browse", queue=queue, subqueue=subqueue, rank=rank)
        command, values = with_conditions(command, page.conditions, NGINN_COLUMNS, self._dialect)
        bounds = {"after": page.after, "limit": page.limit, "with_body": int(page.with_body)}
        rows = transaction.rows(command, **bounds, **values)
        return [browsed_row(queue, row, self._settings, failed=failed, with_body=page.with_body) for row in rows]
