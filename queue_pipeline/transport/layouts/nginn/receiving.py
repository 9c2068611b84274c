"""Receiving from NGinn queues in an open transaction: messages become processed ones when it commits."""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Iterator

from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.claims.completion import FailedRow
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.layout import Intake
from queue_pipeline.transport.layouts.nginn.incoming import LONGEST_ERROR, Incoming
from queue_pipeline.transport.layouts.nginn.rows import StoredRow, received
from queue_pipeline.transport.layouts.nginn.sequences import POSTPONE_MILLISECONDS, numbered
from queue_pipeline.transport.layouts.nginn.sorting import RowSummary
from queue_pipeline.transport.layouts.refused_rows import Leaving
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import ReceivedMessage
from queue_pipeline.transport.texts import storable

logger = logging.getLogger(__name__)


class NGinnReceiver:
    """Takes messages, and counts a failed attempt if their work fails."""

    def __init__(self, database: Database, book: AddressBook, incoming: Incoming) -> None:
        self._database = database
        self._book = book
        self._incoming = incoming

    def take(self, transaction: Transaction, queue: QueueTable, max_messages: int, leaving: Leaving) -> Intake:
        """The next messages; unreadable ones fail, those for another queue are forwarded."""
        expired = forwarded = poisoned = 0
        command = self._database.dialect.statement("nginn/queue.receive", queue=queue, order=self._incoming.order)
        refuse, postpone = self._statement("row_refuse", queue), self._statement("row_postpone", queue)
        while True:
            rows = transaction.rows(command, limit=max_messages)
            if not rows:
                return Intake([], expired, forwarded, poisoned)
            # SQLite returns what it updated in no order.
            rows = sorted(rows, key=lambda row: self._incoming.place(row[-1], row[0]))
            stored = {int(row[0]): StoredRow(*row[:-2]) for row in rows}
            looked = [
                RowSummary(one.id, one.to_endpoint, one.headers, one.text, row[-2])
                for one, row in zip(stored.values(), rows, strict=True)
            ]
            found = self._incoming.settle(
                transaction,
                queue,
                looked,
                leaving,
                lambda rows: None,
                lambda row, problem: transaction.execute(refuse, error=problem, row_version=row),
                lambda row: transaction.execute(postpone, delay=POSTPONE_MILLISECONDS, row_version=row),
            )
            expired, forwarded = expired + len(found.expired), forwarded + len(found.foreign)
            poisoned += len(found.refused)
            if found.kept:
                self._count_sequences(transaction, queue, found.in_sequence, found.kept)
                messages = [received(queue.canonical, stored[row], self._book.nginn) for row in found.kept]
                return Intake(messages, expired, forwarded, poisoned)

    @contextlib.contextmanager
    def attempts(self, queue: QueueTable, messages: list[ReceivedMessage]) -> Iterator[None]:
        """Count a failed attempt of messages after their work failed and was rolled back."""
        try:
            yield
        except Exception as error:
            text = storable(_text_of(error), LONGEST_ERROR)
            marks = [self.mark(message, text) for message in messages]
            try:
                self._database.run(lambda own: self.fail(own, queue, marks))
            except Exception as trouble:
                logger.warning("queue %s: failed attempts could not be counted: %s", queue, trouble)
            raise

    def mark(self, message: ReceivedMessage, error: str) -> FailedRow:
        """The retry of a message that failed, by the schedule."""
        waits, retries = self._book.nginn.retry_seconds, int(message.headers.get(wire.NGINN_RETRY_COUNT, "0"))
        milliseconds = round(waits[retries] * 1000) if retries < len(waits) else None
        return FailedRow(message.row_version, error, milliseconds)

    def fail(self, transaction: Transaction, queue: QueueTable, marks: list[FailedRow]) -> int:
        """Mark messages as the reference does, except those that another reader processed; returns how many."""
        retry, fail = self._statement("row_retry", queue), self._statement("row_fail", queue)
        marked = 0
        for row, error, milliseconds in marks:
            if milliseconds is None:
                marked += transaction.count(fail, error=error, row_version=row)
            else:
                marked += transaction.count(retry, delay=milliseconds, error=error, row_version=row)
        return marked

    def _count_sequences(
        self, transaction: Transaction, queue: QueueTable, in_sequence: dict[int, dict[str, str]], kept: list[int]
    ) -> None:
        if self._book.nginn.sequences:
            messages = [one for one in numbered(in_sequence) if one.row in set(kept)]
            self._incoming.sequences.handle(transaction, messages, self._incoming.release(transaction, queue))

    def _statement(self, name: str, queue: QueueTable) -> Command:
        return self._database.dialect.statement(f"nginn/queue.{name}", queue=queue)


def _text_of(error: Exception) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except Exception as problem:
        # An exception that raises where it is looked at.
        return f"{type(error).__name__}: (its text cannot be made: {type(problem).__name__})"
