"""Failure counts of queues, shared by all receivers, and the code that last succeeded on a queue."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from queue_pipeline.errors import (
    DatabaseError,
    LayoutChangedError,
    TableNotFoundError,
    TransientDatabaseError,
)
from queue_pipeline.transport.addresses.queues import FAILURES_TABLE, AddressBook
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction, repeated_if_added
from queue_pipeline.transport.texts import storable

LONGEST_ERROR = 1_000
"""Characters of the last error that are kept; those outside the first plane take two on SQL Server."""
UNSTORABLE = "an error that the database does not store; see the log of the run that met it"
"""Counted in place of an error whose own words the database refuses."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FailureCount:
    """How many attempts on a queue's batches failed in a row, for how long on the database's clock, and why."""

    queue: str
    failures: int
    since_seconds: float
    last_error: str


class FailureCounts:
    """Records, lists and clears failures, and keeps the proof that a queue can be processed."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def record(self, transaction: Transaction, queue: str, error: str) -> int:
        """Count a failed attempt in the caller's transaction; returns how many there are in a row."""
        rows = transaction.rows(self._statement("failure_record"), queue=queue, error=error)
        return int(rows[0][0])

    def add(self, queue: str, error: str) -> int:
        """Count a failed attempt in a transaction of its own."""
        return self.beside(error, lambda own, text: self.record(own, queue, text))

    def beside(self, error: str, work: Callable[[Transaction, str], T]) -> T:
        """Run a transaction that records a failure with storable words; again if another one recorded the first.

        If the database refuses the words, a fixed text replaces them: an uncounted failure would be retried forever.
        """
        text = storable(error, LONGEST_ERROR)
        try:
            return self._recorded(text, work)
        except (TableNotFoundError, TransientDatabaseError, LayoutChangedError):
            raise
        except DatabaseError as refusal:
            logger.warning("an error is counted without its words, which the database refused (%s)", refusal)
            return self._recorded(UNSTORABLE, work)

    def _recorded(self, text: str, work: Callable[[Transaction, str], T]) -> T:
        return self._database.run(repeated_if_added()(lambda own: work(own, text)))

    def prove(self, queue: str, proof: str) -> None:
        """Keep which code and Spark just processed a message of a queue."""
        command = self._statement("proof_note")
        self._database.run(repeated_if_added()(lambda own: own.execute(command, queue=queue, proof=proof)))

    def proof(self, queue: str) -> str | None:
        """Which code and Spark last processed a message of a queue."""
        rows = self._database.rows(self._statement("proof_find"), queue=queue)
        return rows[0][0] if rows else None

    def clear(self, queue: str) -> None:
        """Forget a queue's failures: something succeeded."""
        self._database.count(self._statement("failure_clear"), queue=queue)

    def list(self) -> dict[str, FailureCount]:
        """Queues that fail, by canonical address."""
        rows = self._database.rows(self._statement("failure_list"))
        return {
            queue: FailureCount(queue, failures, milliseconds / 1000, error)
            for queue, failures, milliseconds, error in rows
        }

    def _statement(self, name: str) -> Command:
        return self._database.dialect.statement(f"operations.{name}", failures=self._book.own(FAILURES_TABLE))
