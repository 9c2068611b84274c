"""Claims on NGinn queues: messages stay in subqueue R of their table, and become ready when a lease ends.

`<queue>.Claimed` records the claim and the lease of each message. The claim owns a message while the retry time of the
message equals the end of that lease; any other process that takes it, .NET ones included, changes the retry time.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Sequence
from dataclasses import replace

from queue_pipeline.errors import ClaimLostError
from queue_pipeline.transport.addresses.queues import AddressBook, ClaimTables
from queue_pipeline.transport.claims.claim import DEFAULT_MAX_BYTES, Claim, partly_lost, ranges
from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.claims.completion import Completion, FailedRow
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import Bounds
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.layout import RefusedCompletionError
from queue_pipeline.transport.layouts.nginn.incoming import LONGEST_ERROR, Incoming
from queue_pipeline.transport.layouts.nginn.sequences import POSTPONE_MILLISECONDS, numbered
from queue_pipeline.transport.layouts.nginn.sorting import RowSummary
from queue_pipeline.transport.layouts.nginn.text import decode_headers, without_half
from queue_pipeline.transport.layouts.refused_rows import Leaving
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.texts import storable

UNREADABLE = "unreadable; the .NET reader would stop at this message"


class NGinnClaimRows:
    """What claims do to the rows of an NGinn queue; each method is a step inside a transaction of `Claims`."""

    def __init__(self, database: Database, book: AddressBook, store: ClaimTable, incoming: Incoming) -> None:
        self._database = database
        self._book = book
        self._store = store
        self._incoming = incoming
        self.send_on = incoming.send_on

    def regain(self, transaction: Transaction, tables: ClaimTables, claim: Claim, lease: int) -> Claim | None:
        """Hold the messages that are still the claim's, drop those that other readers took; None if none is left."""
        kept: Claim | None = claim
        if transaction.count(self._store.statement(tables, "forget_lost"), claim_id=claim.claim_id):
            kept = self._store.shrink(transaction, tables, claim)
        if kept is not None:
            self.hold(transaction, tables, kept, lease)
        return kept

    def hold(self, transaction: Transaction, tables: ClaimTables, claim: Claim, lease: int) -> None:
        """Hold a claim's messages for `lease` milliseconds from now, by their retry time."""
        self._database.dialect.extend_in_place(transaction, tables, claim.claim_id, lease)

    def finish(self, transaction: Transaction, tables: ClaimTables, done: Completion) -> None:
        """Complete the messages that did not fail; all must still be the claim's."""
        unreadable = (FailedRow(row, UNREADABLE) for row in done.unreadable)
        self._fail(transaction, tables, done.claim, (*done.failed, *unreadable))
        self._count_sequences(transaction, tables, done.claim)
        self._complete(transaction, tables, done.claim)

    def dead_letter(
        self, transaction: Transaction, tables: ClaimTables, claim: Claim, row_versions: Sequence[int]
    ) -> None:
        """Mark unreadable messages as failed, and take them out of the claim."""
        self._fail(transaction, tables, claim, [FailedRow(row, UNREADABLE) for row in row_versions])

    def _complete(self, transaction: Transaction, tables: ClaimTables, claim: Claim) -> None:
        command, parts = (self._store.statement(tables, name) for name in ("complete", "parts"))
        # In parts: the row locks of a single statement would become a lock of the table on SQL Server.
        bounds = {"messages": self._database.dialect.rows_per_take, "bytes": DEFAULT_MAX_BYTES}
        for first, last, messages, _ in transaction.rows(parts, claim_id=claim.claim_id, **bounds):
            if transaction.count(command, claim_id=claim.claim_id, first=first, last=last) != messages:
                raise partly_lost(claim)
        transaction.execute(self._store.statement(tables, "drop"), claim_id=claim.claim_id)

    def _fail(self, transaction: Transaction, tables: ClaimTables, claim: Claim, failed: Sequence[FailedRow]) -> None:
        retry, fail, drop = (self._store.statement(tables, name) for name in ("retry_row", "fail_row", "drop_one"))
        for row, error, milliseconds in failed:
            values = {"error": storable(error, LONGEST_ERROR), "claim_id": claim.claim_id, "row_version": row}
            if milliseconds is None:
                count = transaction.count(fail, **values)
            else:
                count = transaction.count(retry, delay=milliseconds, **values)
            if count != 1:
                raise partly_lost(claim)
            transaction.execute(drop, claim_id=claim.claim_id, row_version=row)

    def give_back(self, transaction: Transaction, tables: ClaimTables, claim: Claim) -> int:
        """Make a claim's messages ready again, unchanged; returns how many."""
        count = transaction.count(self._store.statement(tables, "return"), claim_id=claim.claim_id)
        transaction.execute(self._store.statement(tables, "drop"), claim_id=claim.claim_id)
        return count

    def marked(self, transaction: Transaction, tables: ClaimTables, claim: Claim, text: str) -> list[int]:
        """Looked for in the database; the count of retries is a column."""
        if text != wire.quote(wire.RETRIES):
            return self._store.marked(transaction, tables, claim, text)
        rows = transaction.rows(self._store.statement(tables, "tried"), claim_id=claim.claim_id)
        return [int(row[0]) for row in rows]

    def _put_in_line(self, transaction: Transaction, tables: ClaimTables, claim: Claim, rows: Sequence[int]) -> None:
        """Messages that were out of turn wait; the other messages of their claim are ready again."""
        postpone, drop = (self._store.statement(tables, name) for name in ("postpone_row", "drop_one"))
        for row in rows:
            transaction.execute(postpone, delay=POSTPONE_MILLISECONDS, claim_id=claim.claim_id, row_version=row)
            transaction.execute(drop, claim_id=claim.claim_id, row_version=row)
        self.give_back(transaction, tables, claim)

    def _count_sequences(self, transaction: Transaction, tables: ClaimTables, claim: Claim) -> None:
        if not self._book.nginn.sequences:
            return
        looked = self._look(transaction, tables, claim)
        messages = numbered(
            {row.id: headers for row in looked if wire.NGINN_SEQUENCE in (headers := decode_headers(row.headers))}
        )
        release = self._incoming.release(transaction, tables.queue)
        if out_of_turn := self._incoming.sequences.handle(transaction, messages, release):
            wait = functools.partial(self._put_in_line, tables=tables, claim=claim, rows=out_of_turn)
            raise RefusedCompletionError(_out_of_turn(claim, len(out_of_turn)), wait)

    def _look(self, transaction: Transaction, tables: ClaimTables, claim: Claim) -> list[RowSummary]:
        command = self._store.statement(tables, "sort")
        looked = (RowSummary(*row) for row in transaction.rows(command, claim_id=claim.claim_id))
        return [row._replace(text=without_half(row.text)) for row in looked]

    def _finish(
        self, transaction: Transaction, tables: ClaimTables, claim: Claim, all_rows: Sequence[int], rows: list[int]
    ) -> None:
        """Complete messages without processing them; in ranges, because a whole backlog may have expired."""
        if not rows:
            return
        part, separate = str(uuid.uuid4()), self._store.statement(tables, "separate")
        for first, last in ranges(rows, all_rows):
            transaction.execute(separate, new_claim_id=part, claim_id=claim.claim_id, first=first, last=last)
        self._complete(transaction, tables, replace(claim, claim_id=part))

    def take(
        self, transaction: Transaction, tables: ClaimTables, owner: str, bounds: Bounds, lease: int, leaving: Leaving
    ) -> Claim | None:
        """A claim of messages that are ready; None if there are none."""
        claim = Claim(str(uuid.uuid4()), tables.queue.canonical, owner, 1, 0, 0, 0)
        dialect = self._database.dialect
        fail, postpone, drop = (
            self._store.statement(tables, name) for name in ("fail_row", "postpone_row", "drop_one")
        )

        def leave(command: Command, row: int, **values: object) -> None:
            transaction.execute(command, claim_id=claim.claim_id, row_version=row, **values)
            transaction.execute(drop, claim_id=claim.claim_id, row_version=row)

        while not claim.messages:
            if not dialect.take_in_place(transaction, tables, self._incoming.order, claim.claim_id, bounds, lease):
                return None
            looked = self._look(transaction, tables, claim)
            found = self._incoming.settle(
                transaction,
                tables.queue,
                looked,
                leaving,
                functools.partial(self._finish, transaction, tables, claim, [row.id for row in looked]),
                lambda row, problem: leave(fail, row, error=problem),
                lambda row: leave(postpone, row, delay=POSTPONE_MILLISECONDS),
            )
            messages, size, first = self._store.sizes(transaction, tables, claim.claim_id)
            claim = replace(
                claim,
                messages=messages,
                bytes=size,
                first_row_version=first,
                expired=claim.expired + len(found.expired),
                forwarded=claim.forwarded + len(found.foreign),
            )
        self._store.open(transaction, claim, lease)
        return claim


def _out_of_turn(claim: Claim, messages: int) -> ClaimLostError:
    return ClaimLostError(
        f"claim {claim.claim_id} of {claim.queue} was ended without results: {messages} of its messages belong to a "
        "sequence in which an earlier one has not been processed; they wait for it, and the others are ready again"
    )
