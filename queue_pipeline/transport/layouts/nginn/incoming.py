"""Handles messages of NGinn queues before they are processed: expired, foreign, control and unreadable ones."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any

from queue_pipeline.errors import AddressError, QueueNotFoundError, QueuePipelineError
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.nginn.control import ControlMessages
from queue_pipeline.transport.layouts.nginn.rows import StoredRow, forwarded_row
from queue_pipeline.transport.layouts.nginn.sequences import Sequences, numbered
from queue_pipeline.transport.layouts.nginn.sorting import RowSummary, SortedRows, is_foreign, sort_rows
from queue_pipeline.transport.layouts.nginn.text import LONGEST_HEADERS
from queue_pipeline.transport.layouts.refused_rows import Leaving, is_refusal
from queue_pipeline.transport.texts import Refusal, few_of_each, storable

DEFAULT_ORDER = ("retry_time", "id")
FIFO_ORDER = ("id",)
LONGEST_ERROR = 100_000

logger = logging.getLogger(__name__)


class Incoming:
    """Handles the messages that no reader of an NGinn queue processes."""

    def __init__(self, database: Database, book: AddressBook, control: ControlMessages, sequences: Sequences) -> None:
        self._database = database
        self._book = book
        self._control = control
        self.sequences = sequences

    @property
    def order(self) -> str:
        """The columns by which messages are taken."""
        columns = FIFO_ORDER if self._book.nginn.fifo else DEFAULT_ORDER
        return ", ".join(map(self._database.dialect.quote, columns))

    def place(self, due: Any, row: int) -> tuple[Any, ...]:
        """The sort key of a message in that order."""
        return (row,) if self._book.nginn.fifo else (due, row)

    def settle(
        self,
        transaction: Transaction,
        queue: QueueTable,
        rows: Sequence[RowSummary],
        leaving: Leaving,
        done: Callable[[list[int]], object],
        refuse: Callable[[int, str], object],
        postpone: Callable[[int], object],
    ) -> SortedRows:
        """Handle all messages that are not to be processed; `kept` holds the others.

        `leaving` gets the rows that are sent to other queues, which may refuse them; see `send_on`.
        """
        found = sort_rows(rows, queue, self._book)
        leaving += [*found.foreign, *found.control]
        unreadable, foreign, found.foreign = len(found.refused), found.foreign, []
        finished = list(found.expired)
        for row in foreign:
            trouble = self._forward(transaction, self._message(transaction, queue, row))
            if trouble is None:
                finished.append(row)
                found.foreign.append(row)
            else:
                found.refused.append((row, trouble))
        for row in found.control:
            trouble = self._control.handle(transaction, queue, self._message(transaction, queue, row))
            finished.append(row) if trouble is None else found.refused.append((row, trouble))
        for row, problem in found.refused:
            refuse(row, storable(problem, LONGEST_ERROR))
        causes = ("unreadable" if at < unreadable else "not sent on" for at in range(len(found.refused)))
        refusals = (
            Refusal(str(row), cause, problem.removeprefix("unreadable: "))
            for (row, problem), cause in zip(found.refused, causes, strict=True)
        )
        for line in few_of_each(refusals):
            logger.error("queue %s: moved to its failed ones: %s", queue, line)
        done(finished)
        if self._book.nginn.sequences and found.in_sequence:
            waiting = set(self.sequences.admit(transaction, numbered(found.in_sequence)))
            for row in waiting:
                postpone(row)
            found.kept = [row for row in found.kept if row not in waiting]
        return found

    def send_on(self, queue: QueueTable, rows: Sequence[int]) -> int:
        """Forward rows, one transaction each; returns how many. A row whose destination refuses it fails."""
        fail, sent, refused = self._statement("row_fail", queue), 0, list[Refusal]()
        for row in rows:
            try:
                sent += self._database.run(functools.partial(self._send_alone, queue=queue, row=row))
            except QueuePipelineError as error:
                if not is_refusal(error):
                    raise
                values = {"error": storable(str(error), LONGEST_ERROR), "row_version": row}
                self._database.count(fail, **values)
                refused.append(Refusal(str(row), type(error).__name__, str(error)))
        for line in few_of_each(refused):
            logger.error("queue %s: could not be sent on and failed: %s", queue, line)
        return sent

    def _send_alone(self, transaction: Transaction, queue: QueueTable, row: int) -> int:
        if not transaction.count(self._statement("row_take", queue), row_version=row):
            return 0
        message = self._message(transaction, queue, row)
        foreign = is_foreign(message.to_endpoint, queue, self._book)
        trouble = self._forward(transaction, message) if foreign else self._control.handle(transaction, queue, message)
        if trouble is not None:
            transaction.execute(
                self._statement("row_refuse", queue), error=storable(trouble, LONGEST_ERROR), row_version=row
            )
        return int(foreign and trouble is None)

    def release(self, transaction: Transaction, queue: QueueTable) -> Callable[[int], int]:
        """Makes a waiting message of a sequence ready."""
        command = self._statement("row_release", queue)
        return lambda row: transaction.count(command, row_version=row)

    def _forward(self, transaction: Transaction, message: StoredRow) -> str | None:
        """Forward a message unchanged; returns why that is impossible, or None."""
        dialect = self._database.dialect
        try:
            table = self._book.resolve(message.to_endpoint)
            if not transaction.rows(dialect.statement("schema.exists", queue=table)):
                raise QueueNotFoundError(message.to_endpoint)
        except (AddressError, QueueNotFoundError) as error:
            return f"for {message.to_endpoint}, where it cannot be sent from here: {error}"
        if len(message.headers or "") > LONGEST_HEADERS:
            return f"for {message.to_endpoint}, and its headers are too long to send it there from here"
        transaction.insert(self._statement("send", table), [forwarded_row(message)])
        return None

    def _message(self, transaction: Transaction, queue: QueueTable, row: int) -> StoredRow:
        return StoredRow(*transaction.rows(self._statement("message", queue), row_version=row)[0])

    def _statement(self, name: str, queue: QueueTable) -> Command:
        return self._database.dialect.statement(f"nginn/queue.{name}", queue=queue)
