"""An NGinn queue for operators: its figures, its processed messages, its index."""

from __future__ import annotations

import contextlib
from typing import Any

from queue_pipeline.errors import AddressError, QueueNotFoundError
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.index_audit.description import describe
from queue_pipeline.transport.index_audit.findings import Finding, nginn_findings
from queue_pipeline.transport.inspection.status import ClaimTotals, QueueStatus, claim_totals
from queue_pipeline.transport.layouts.nginn.queue import NGinnQueues


class NGinnTables:
    """All messages of a queue are in one table."""

    def __init__(self, database: Database, book: AddressBook, queues: NGinnQueues) -> None:
        self._database = database
        self._book = book
        self._queues = queues

    def discover(self) -> list[QueueTable]:
        """Every table in the default schema of the shape of an NGinn queue, under the first alias that is known."""
        aliases = self._book.nginn.aliases
        if not aliases:
            return []
        here = self._book.resolve(QueueAddress("NGinn"))
        command = self._database.dialect.statement("nginn/queue.discover", queue=here)
        rows = self._database.rows(command, schema=here.schema or "")
        found: list[QueueTable] = []
        for (name,) in rows:
            # A table that no endpoint can name is no queue, whatever its shape.
            with contextlib.suppress(AddressError):
                found.append(self._book.resolve(f"sql://{aliases[0]}/{name}"))
        return found

    def status(self, queue: QueueTable, most_counted: int) -> QueueStatus:
        """The figures of the queue's subqueues; messages in claims count as delayed where claims are not installed."""
        figures = self._queues.figures(queue)
        dialect, claimed = self._database.dialect, self._book.claim_tables(queue).claimed

        def look(own: Transaction) -> tuple[Any, Any, ClaimTotals]:
            status = own.rows(dialect.statement("nginn/queue.status", queue=queue), limit=most_counted)[0]
            delayed = None
            if own.rows(dialect.statement("schema.exists", queue=claimed)):
                command = dialect.statement("nginn/queue.count_delayed", queue=queue, claimed=claimed)
                delayed = own.rows(command, limit=most_counted)[0]
            return status, delayed, claim_totals(own, dialect, self._book, queue)

        (pending, oldest), delayed, claims = self._database.run(look, write=False)
        waiting, next_due = delayed or (figures.scheduled, None)
        return QueueStatus(
            queue.canonical,
            int(pending),
            int(pending) >= most_counted,
            None if oldest is None else max(0.0, float(oldest) / 1000),
            0,
            int(waiting),
            None if next_due is None else float(next_due) / 1000,
            *claims,
            figures.processed,
            figures.failed,
            figures.latency_milliseconds,
        )

    def issued(self, queue: QueueTable) -> int | None:
        """Not known: the numbers of rows are not asked for."""
        return None

    def purge(self, queue: QueueTable, batch: int) -> int:
        """Delete a batch of processed messages that have been kept for long enough; returns how many."""
        settings = self._book.nginn
        name = "purge_due" if settings.retention_from == "due" else "purge_processed"
        command = self._database.dialect.statement(f"nginn/queue.{name}", queue=queue)
        seconds = round(settings.retention_seconds)
        return self._database.count(command, seconds=seconds, limit=batch)

    def audit(self, queue: QueueTable) -> list[Finding]:
        """What is missing: a queue has one table, and one index beside its key."""
        dialect = self._database.dialect
        described = self._database.run(lambda own: describe(own, dialect, queue), write=False)
        if described is None:
            raise QueueNotFoundError(queue.canonical)
        return nginn_findings(dialect, described)

    def missing_indexes(self, queue: QueueTable) -> list[Finding]:
        """The same: its one index is all that is looked for."""
        return self.audit(queue)
