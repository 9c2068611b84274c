"""Failure counts: queues whose batches fail, counted in the database so that every receiver slows down together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from queue_pipeline.transport.addressing import FAILURES_TABLE, AddressBook
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.errors import DuplicateKeyError

LONGEST_ERROR = 1_000
"""Characters of the last error that are kept; those outside the first plane take two on SQL Server."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FailureCount:
    """How many attempts on a queue's batches failed in a row, for how long on the database's clock, and why."""

    queue: str
    failures: int
    since_seconds: float
    last_error: str


class FailureCounts:
    """Records, lists and clears."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def record(self, transaction: Transaction, queue: str, error: str) -> int:
        """Count a failed attempt in the caller's transaction; returns how many there are in a row."""
        rows = transaction.rows(self._statement("failure_record"), queue=queue, error=error[:LONGEST_ERROR])
        return int(rows[0][0])

    def add(self, queue: str, error: str) -> int:
        """Count a failed attempt in a transaction of its own."""
        return self.beside(lambda own: self.record(own, queue, error))

    def beside(self, work: Callable[[Transaction], T]) -> T:
        """Run a transaction that records a failure; once more if another was the first to record one of this queue."""
        try:
            return self._database.run(work)
        except DuplicateKeyError:
            return self._database.run(work)

    def clear(self, queue: str) -> None:
        """Forget a queue's failures: something succeeded."""
        self._database.run(lambda own: own.execute(self._statement("failure_clear"), queue=queue))

    def list(self) -> dict[str, FailureCount]:
        """Queues that fail, by canonical address."""
        rows = self._database.run(lambda own: own.rows(self._statement("failure_list")), write=False)
        return {
            queue: FailureCount(queue, failures, milliseconds / 1000, error)
            for queue, failures, milliseconds, error in rows
        }

    def _statement(self, name: str) -> Command:
        return self._database.dialect.statement(f"operations.{name}", failures=self._book.own(FAILURES_TABLE))
