"""Index audit: asks the database how a queue's tables are built, and what is missing, outdated or bloated."""

from __future__ import annotations

import logging
from dataclasses import replace

from queue_pipeline.errors import (
    AccessDeniedError,
    ConfigurationError,
    DatabaseError,
    QueueNotFoundError,
)
from queue_pipeline.transport.addresses.queues import DELAYED_SUFFIX, AddressBook, QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.index_audit.description import Sequence, Size, TableDescription, describe
from queue_pipeline.transport.index_audit.findings import Finding, QueueAudit, Severity, missing_columns
from queue_pipeline.transport.layouts.layout import Layouts

__all__ = ["Finding", "IndexAuditor", "Severity"]

logger = logging.getLogger(__name__)


class IndexAuditor:
    """Audits queues with no more rights than a receiver has; what an account may not see is left out."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def audit(self, queue: QueueTable) -> list[Finding]:
        """Everything that is wrong with a queue's tables."""
        described, delayed = self._database.run(lambda own: self._describe_both(own, queue), write=False)
        described = self._with_size(described)
        if self._database.dialect.has("audit.sequence"):
            described = replace(described, sequence=self._sequence(queue))
        return QueueAudit(self._database.dialect, described, delayed and self._with_size(delayed)).findings()

    def missing_indexes(self, queue: QueueTable) -> list[Finding]:
        """Only the missing indexes."""
        described, delayed = self._database.run(lambda own: self._describe_both(own, queue), write=False)
        return QueueAudit(self._database.dialect, described, delayed).missing_indexes()

    def _describe_both(
        self, transaction: Transaction, queue: QueueTable
    ) -> tuple[TableDescription, TableDescription | None]:
        described = describe(transaction, self._database.dialect, queue)
        if described is None:
            raise QueueNotFoundError(queue.canonical)
        if missing := missing_columns(self._database.dialect, described):
            lacks = ", ".join(missing)
            raise ConfigurationError(f"{queue} is no queue: its table lacks {lacks}; name the table of a queue")
        return described, describe(transaction, self._database.dialect, self._book.sibling(queue, DELAYED_SUFFIX))

    def _with_size(self, described: TableDescription) -> TableDescription:
        """The same with pages and rows, in a transaction of its own: the right to see them may be missing."""
        table, dialect = described.table, self._database.dialect
        if not dialect.has("audit.size"):
            return described  # its free pages belong to the whole file, and serve every table
        command = dialect.statement("audit.size", queue=table)
        try:
            rows = self._database.rows(command)
        except (AccessDeniedError, DatabaseError, QueueNotFoundError) as error:
            # Babelfish has no such view, which reads as if a table were missing.
            logger.debug("the pages of %s cannot be counted: %s", table, error)
            return described
        if not rows or rows[0][1] is None:
            return described
        pages, live, dead, vacuumed_lately = rows[0]
        return replace(described, size=Size(int(pages), int(live), int(dead), bool(vacuumed_lately)))

    def _sequence(self, queue: QueueTable) -> Sequence | None:
        dialect = self._database.dialect
        command = dialect.statement("audit.sequence", queue=queue)
        for schema, name, largest, last in self._database.rows(command):
            quoted = f"{dialect.quote(schema)}.{dialect.quote(name)}"
            return Sequence(quoted, int(largest), None if last is None else int(last))
        return None


def indexes_to_warn_of(layouts: Layouts, queue: QueueTable) -> list[Finding]:
    """The missing indexes of a queue, to warn of before the work: a failing check is logged, never raised."""
    try:
        return layouts.of(queue).tables.missing_indexes(queue)
    except QueueNotFoundError:
        return []  # the work itself will say so
    except Exception as error:
        logger.warning("checking indexes of %s failed: %s", queue, error)
        return []
