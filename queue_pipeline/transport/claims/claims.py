"""Claims: batches held durably, outside of any transaction, until they are completed together with their results.

A claim is a row in `QueueClaims` and the rows of `<queue>.Claimed`, which hold its messages or, for NGinn, name them.
Only its holder can complete it, see `completion.py`.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.addresses.queues import AddressBook, ClaimTables, QueueTable
from queue_pipeline.transport.claims.claim import (
    DEFAULT_LEASE_SECONDS,
    DEFAULT_MAX_BYTES,
    Claim,
    ClaimStatus,
    RowsRead,
    check_claim,
    check_lease,
    check_owner,
    lost,
    partly_lost,
)
from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.claims.completion import Completer
from queue_pipeline.transport.claims.failure_counts import FailureCounts
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import Bounds
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.layout import Layouts
from queue_pipeline.transport.layouts.refused_rows import Leaving, past_refusals
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import ReceivedMessage, from_row


class ClaimedMessages(NamedTuple):
    """A small claim's messages as objects, its poison as (row version, what is wrong), and the figures of both."""

    good: list[ReceivedMessage]
    poison: list[tuple[int, str]]
    read: RowsRead


class Claims:
    """Claim, adopt, renew, complete, release, split and list."""

    def __init__(
        self,
        database: Database,
        book: AddressBook,
        store: ClaimTable,
        layouts: Layouts,
        failures: FailureCounts,
        completer: Completer,
    ) -> None:
        self._database = database
        self._book = book
        self._store = store
        self._layouts = layouts
        self._failures = failures
        self.complete = completer.complete

    def claim(
        self,
        queue: QueueTable,
        owner: str,
        max_messages: int,
        max_bytes: int = DEFAULT_MAX_BYTES,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
    ) -> Claim | None:
        """The next batch: a released or expired claim, else the head of the queue; None if nothing is available."""
        check_claim(queue, owner, max_messages, max_bytes, lease_seconds)
        bounds, lease = Bounds(max_messages, max_bytes), round(lease_seconds * 1000)
        tables = self._book.claim_tables(queue)
        rows = self._layouts.of(queue).claims

        def take(transaction: Transaction, leaving: Leaving) -> Claim | None:
            old = self._take_over(transaction, tables, owner, bounds, lease)
            return old or rows.take(transaction, tables, owner, bounds, lease, leaving)

        claim, left = past_refusals(self._database, take, functools.partial(rows.send_on, queue))
        return replace(claim, forwarded=claim.forwarded + left) if claim is not None and left else claim

    def adopt(self, claim: Claim, owner: str, lease_seconds: float = DEFAULT_LEASE_SECONDS) -> Claim | None:
        """Take over one claim that was released, that expired, or whose holder the caller knows to be dead.

        A claim that changed hands meanwhile is not adopted: then, and if it was completed, the result is None.
        """
        check_owner(claim.queue, owner)
        check_lease(claim.queue, lease_seconds)
        milliseconds = round(lease_seconds * 1000)
        tables = self._store.tables(claim)

        def take(transaction: Transaction) -> Claim | None:
            adopted = self._store.adopt(transaction, claim, owner, milliseconds)
            if adopted is None:
                return None
            return self._layouts.of(tables.queue).claims.regain(transaction, tables, adopted, milliseconds)

        return self._database.run(take)

    def renew(self, claim: Claim, lease_seconds: float = DEFAULT_LEASE_SECONDS) -> None:
        """Hold a claim for longer, counted from now on the database's clock."""
        check_lease(claim.queue, lease_seconds)
        milliseconds, tables = round(lease_seconds * 1000), self._store.tables(claim)

        def hold(transaction: Transaction) -> None:
            self._store.change(transaction, "renew", claim, lease=milliseconds)
            self._layouts.of(tables.queue).claims.hold(transaction, tables, claim, milliseconds)

        self._database.run(hold)

    def begin(self, claim: Claim) -> None:
        """Note that its messages are tried: if their holder dies now, they are isolated, or counted if they were."""
        self._database.run(lambda own: self._store.change(own, "begin", claim))

    def release(self, claim: Claim, *, died: bool = False) -> None:
        """Release a claim; the next claim on its queue takes it over. `died`: its holder died, see `begin`."""
        self._database.run(lambda own: self._store.change(own, "release", claim, died=died))

    def release_owner(self, owner: str, *, died: bool = False) -> list[Claim]:
        """Release every claim of an owner whose run ended; returns them as they were held. `died` as in `release`."""
        return self._database.run(lambda own: self._store.release_owner(own, owner, died=died))

    def fail(self, claim: Claim, error: str) -> tuple[Claim, int]:
        """Count a failure of a claim; returns it, and how many attempts on its queue failed in a row."""

        def count_failure(transaction: Transaction, text: str) -> tuple[Claim, int]:
            failed = self._store.fail(transaction, claim, text)
            return failed, self._failures.record(transaction, claim.queue, text)

        return self._failures.beside(error, count_failure)

    def isolate(self, claim: Claim, error: str) -> tuple[Claim, int]:
        """Mark a claim that was in work when Spark died: from now on its messages are tried alone.

        The failure is counted for the queue only. Returns the claim, and how many attempts failed in a row.
        """

        def mark(transaction: Transaction, text: str) -> int:
            self._store.change(transaction, "isolate", claim, error=text)
            return self._failures.record(transaction, claim.queue, text)

        in_a_row = self._failures.beside(error, mark)
        return replace(claim, isolated=True), in_a_row

    def rest(self, claim: Claim, error: str) -> None:
        """Keep the error of messages that failed and wait for a verdict; the death of their holder is not counted."""
        self._failures.beside(error, lambda own, text: self._store.change(own, "rest", claim, error=text))

    def give_back(self, claim: Claim) -> int:
        """Return a claim's messages to the queue, on SQL Server to its end; returns how many there were."""
        tables = self._store.tables(claim)

        def restore(transaction: Transaction) -> int:
            self._store.pass_fence(transaction, claim)
            return self._layouts.of(tables.queue).claims.give_back(transaction, tables, claim)

        return self._database.run(restore)

    def dead_letter(self, claim: Claim, row_versions: Sequence[int]) -> Claim | None:
        """Move messages with unreadable headers to where failed ones are, unchanged; None when nothing is left."""
        tables = self._store.tables(claim)

        def move(transaction: Transaction) -> Claim | None:
            self._layouts.of(tables.queue).claims.dead_letter(transaction, tables, claim, row_versions)
            return self._store.shrink(transaction, tables, claim)

        return self._database.run(move)

    def give_back_abandoned(self, queue: QueueTable) -> int:
        """Put the messages of all claims without a holder back into their queue, which claims will no longer serve."""
        tables, everything = self._book.claim_tables(queue), Bounds(2**31 - 1, DEFAULT_MAX_BYTES)
        lease = round(DEFAULT_LEASE_SECONDS * 1000)
        owner, returned = f"give back {uuid.uuid4()}", 0
        while claim := self._database.run(lambda own: self._take_over(own, tables, owner, everything, lease)):
            returned += self.give_back(claim)
        return returned

    def split(self, claim: Claim, keep: int) -> tuple[Claim, Claim]:
        """Split a claim in two: the first `keep` messages, and the rest."""
        if not 0 < keep < claim.messages:
            raise ConfigurationError(
                f"claim {claim.claim_id} of {claim.queue} has {claim.messages} messages; "
                "keep at least one and fewer than all"
            )
        tables = self._store.tables(claim)
        middle = self._store.statement(tables, "middle")

        def cut(transaction: Transaction) -> tuple[Claim, Claim]:
            rows = transaction.rows(middle, claim_id=claim.claim_id, offset=keep - 1)
            if not rows:
                raise lost(claim)
            return self._store.split_at(transaction, tables, claim, rows[0][0])

        return self._database.run(cut)

    def separate(self, claim: Claim, ranges: Sequence[tuple[int, int]]) -> tuple[Claim, Claim]:
        """Split a claim in two: the rest, and the messages in these ranges of row versions. Neither may be empty."""
        tables = self._store.tables(claim)
        return self._database.run(lambda own: self._store.separate(own, tables, claim, ranges))

    def marked(self, claim: Claim, text: str) -> list[int]:
        """The row versions of a claim's messages whose headers hold a text, looked for in the database."""
        tables = self._store.tables(claim)
        rows = self._layouts.of(tables.queue).claims
        return self._database.run(lambda own: rows.marked(own, tables, claim, text), write=False)

    def messages(self, claim: Claim) -> ClaimedMessages:
        """A small claim's messages as objects."""
        tables = self._store.tables(claim)
        good: list[ReceivedMessage] = []
        poison: list[tuple[int, str]] = []

        def read(transaction: Transaction) -> tuple[RowsRead, Sequence[Any]]:
            held = self._store.held_rows(transaction, tables, claim)
            if held.messages != claim.messages:
                raise self._store.other_size(transaction, claim, held.messages)
            values = {"claim_id": claim.claim_id, "first": held.first, "last": held.last}
            rows = self._layouts.of(tables.queue).rows.read(transaction, tables, values)
            read = RowsRead.of(int(row[1]) for row in rows)
            if read != held:
                raise partly_lost(claim)
            return read, rows

        figures, rows = self._database.run(read, write=False)
        for row in rows:
            try:
                good.append(from_row(*row))
            except ValueError as error:
                poison.append((int(row[1]), str(error)))
        for message in good:
            message.headers.pop(wire.FORWARD_DESTINATION, None)
        return ClaimedMessages(good, poison, figures)

    def held_by(self, owner: str) -> list[Claim]:
        """The claims that an owner holds: for processes that know no more of them than whose they are."""
        return [claim for status in self.list() if (claim := status.held) and claim.owner == owner]

    def list(self, queue: QueueTable | None = None) -> list[ClaimStatus]:
        """Every claim of a queue, or of all."""
        return self._database.run(lambda own: self._store.list(own, queue.canonical if queue else None), write=False)

    def waiting(self) -> dict[str, int]:
        """Messages in claims without a holder, by queue: work that waits beside what a peek counts."""
        rows = self._database.rows(self._store.claims_statement("waiting", None))
        return {str(queue): int(messages) for queue, messages in rows}

    def _take_over(
        self, transaction: Transaction, tables: ClaimTables, owner: str, bounds: Bounds, lease: int
    ) -> Claim | None:
        rows = self._layouts.of(tables.queue).claims
        while (claim := self._store.take_over(transaction, tables, owner, bounds, lease)) is not None:
            if (kept := rows.regain(transaction, tables, claim, lease)) is not None:
                return kept
        return None
