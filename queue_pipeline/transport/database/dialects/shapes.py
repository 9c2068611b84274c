"""The columns of queue tables, where tables of several versions exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queue_pipeline.errors import QueueNotFoundError
from queue_pipeline.transport.database.faults import Fault

if TYPE_CHECKING:
    from queue_pipeline.transport.addresses.queues import QueueTable
    from queue_pipeline.transport.database.command import Command
    from queue_pipeline.transport.database.dialects.dialect import Dialect
    from queue_pipeline.transport.database.transaction import Transaction


class Shapes:
    """The columns of the queue tables used so far, where tables of several versions are about."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._types: dict[str, dict[str, str]] = {}

    def columns(self, transaction: Transaction, queue: QueueTable) -> frozenset[str]:
        """The lower-case names of a queue table's columns; empty where every table is alike."""
        return frozenset(self._look(transaction, queue))

    def statement(
        self, transaction: Transaction, name: str, queue: QueueTable, source: str = "m", **tables: QueueTable
    ) -> Command:
        """A statement that names the columns which a queue's table has, and reads them from `source`."""
        columns = self._dialect.optional_columns(self.columns(transaction, queue), source)
        return self._dialect.statement(name, queue=queue, **tables, **columns)

    def has_ascii_headers(self, transaction: Transaction, queue: QueueTable) -> bool:
        """Whether the table is so old that its Headers column loses every character beyond its code page."""
        return self._look(transaction, queue).get("headers") == "varchar"

    def _look(self, transaction: Transaction, queue: QueueTable) -> dict[str, str]:
        if not self._dialect.inspects_columns:
            return {}
        known = self._types.get(queue.qualified)
        if known is None:
            rows = transaction.rows(self._dialect.statement("schema.columns", queue=queue))
            if not rows:
                # As where the server itself finds that the table is missing.
                transaction.doom()
                raise QueueNotFoundError(queue.canonical)
            known = {str(name).lower(): str(kind).lower() for name, kind, *_ in rows}
            self._types[queue.qualified] = known
        return known

    def forget_if_changed(self, error: BaseException) -> None:
        """Look again next time, after an error that says that a column came or went."""
        if self._dialect.fault(error) is Fault.LAYOUT:
            self._types.clear()
