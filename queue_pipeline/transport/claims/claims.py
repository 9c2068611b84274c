"""Claims: a batch held durably, outside any transaction, until it is completed together with its results.

A claim is a row in `QueueClaims` and the messages that were moved from the queue into `<queue>.Claimed`. Its owner and
attempt are the fence: only the process that holds a claim can complete it, see `completion.py`.
"""

from __future__ import annotations

import contextlib
import functools
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from queue_pipeline.transport import headers as wire
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
from queue_pipeline.transport.claims.outbox import Outbox
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialect import Bounds
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.layouts.nginn.claim_rows import InPlaceClaims
from queue_pipeline.transport.layouts.nginn.incoming import Incoming
from queue_pipeline.transport.layouts.nginn.reading import read_in_place
from queue_pipeline.transport.layouts.nginn.rows import is_nginn
from queue_pipeline.transport.layouts.nservicebus.forwarding import Forwarder, Leaving, past_refusals
from queue_pipeline.transport.messages import ReceivedMessage, from_row
from queue_pipeline.transport.queues import AddressBook, ClaimTables, QueueTable
from queue_pipeline.transport.send import Sender


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
        sender: Sender,
        forwarder: Forwarder,
        failures: FailureCounts,
        outbox: Outbox,
        incoming: Incoming,
    ) -> None:
        self._database = database
        self._book = book
        self._forwarder = forwarder
        self._failures = failures
        self._store = ClaimTable(database, book)
        # What is different for NGinn queues, whose messages stay where they are.
        self._in_place = InPlaceClaims(database, book, self._store, incoming)
        completer = Completer(database, self._store, self._in_place, sender, forwarder, outbox)
        self.complete = completer.complete
        self.dead_letter = completer.dead_letter

    def claim(
        self,
        queue: QueueTable,
        owner: str,
        max_messages: int,
        max_bytes: int = DEFAULT_MAX_BYTES,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
    ) -> Claim | None:
        """The next batch: one whose lease ran out or that was released first, else the head of the queue.

        None means that nothing was to be had: the queue is empty, or others hold all of it.
        """
        check_claim(queue, owner, max_messages, max_bytes, lease_seconds)
        bounds, lease = Bounds(max_messages, max_bytes), round(lease_seconds * 1000)
        tables = self._book.claim_tables(queue)
        take_new = self._in_place.take_new if is_nginn(queue) else self._take_new

        def take(transaction: Transaction, leaving: Leaving) -> Claim | None:
            old = self._take_over(transaction, tables, owner, bounds, lease)
            return old or take_new(transaction, tables, owner, bounds, lease, leaving)

        claim, left = past_refusals(self._database, take, functools.partial(self.send_on, queue))
        return replace(claim, forwarded=claim.forwarded + left) if claim is not None and left else claim

    def send_on(self, queue: QueueTable, row_versions: Sequence[int]) -> int:
        """Send messages of a queue that are not for it to where they are for, each alone if one is refused."""
        if is_nginn(queue):
            return self._in_place.send_on(queue, row_versions)
        return self._forwarder.send_on(queue, row_versions, self._forwarder.from_queue(queue))

    def adopt(self, claim: Claim, owner: str, lease_seconds: float = DEFAULT_LEASE_SECONDS) -> Claim | None:
        """Take over one claim that was released, whose lease ran out, or whose holder the caller knows to be dead.

        The last is believed only while the claim is still as given: owner and attempt. Of several adopters one wins.
        Returns the claim as it is now; None when it was completed, or another owner holds it.
        """
        check_owner(claim.queue, owner)
        check_lease(claim.queue, lease_seconds)
        milliseconds = round(lease_seconds * 1000)
        tables = self._store.tables(claim)

        def take(transaction: Transaction) -> Claim | None:
            adopted = self._store.adopt(transaction, claim, owner, milliseconds)
            return adopted and self._kept(transaction, tables, adopted, milliseconds)

        return self._database.run(take)

    def renew(self, claim: Claim, lease_seconds: float = DEFAULT_LEASE_SECONDS) -> None:
        """Hold a claim for longer, counted from now on the database's clock."""
        check_lease(claim.queue, lease_seconds)
        command = self._store.claims_statement("renew", claim.queue)
        milliseconds, tables = round(lease_seconds * 1000), self._store.tables(claim)

        def hold(transaction: Transaction) -> None:
            if transaction.count(command, lease=milliseconds, **claim.fence) != 1:
                raise lost(claim)
            if is_nginn(tables.queue):
                self._in_place.extend(transaction, tables, claim.claim_id, milliseconds)

        self._database.run(hold)

    def begin(self, claim: Claim) -> None:
        """Note that its messages are being tried: if their holder dies from now on, they may be the cause. They are
        isolated then, and counted if they were already.

        A caller that counts no failures need not note it.
        """
        command = self._store.claims_statement("begin", claim.queue)
        if self._database.run(lambda own: own.count(command, **claim.fence)) != 1:
            raise lost(claim)

    def release(self, claim: Claim, *, died: bool = False) -> None:
        """Let go of a claim at once; the next claim on its queue takes it over, at the next attempt.

        `died`: the holder is known to have died. If its messages were being tried, see `begin`.
        """
        self._database.run(lambda own: self._store.release(own, claim, died=died))

    def release_owner(self, owner: str, *, died: bool = False) -> list[Claim]:
        """Let go of every claim that this owner still holds, after its run failed or was cancelled.

        Returns the claims as they were held; `died` as in `release`.
        """
        return self._database.run(lambda own: self._store.release_owner(own, owner, died=died))

    def fail(self, claim: Claim, error: str) -> tuple[Claim, int]:
        """Count a failure of a claim's messages, in the database, where restarts and other receivers find it.

        Returns the claim with the new count, and how many attempts on its queue failed in a row; see `FailureCounts`.
        """

        def count_failure(transaction: Transaction, text: str) -> tuple[Claim, int]:
            failed = self._store.fail(transaction, claim, text)
            return failed, self._failures.record(transaction, claim.queue, text)

        return self._failures.beside(error, count_failure)

    def isolate(self, claim: Claim, error: str) -> tuple[Claim, int]:
        """Mark a claim that was in work when Spark died: its messages are tried with no other beside them from now on.

        It is no failure of theirs, but one of the queue. Returns the claim, and how many there were in a row.
        """
        command = self._store.claims_statement("isolate", claim.queue)

        def mark(transaction: Transaction, text: str) -> int:
            if transaction.count(command, error=text, **claim.fence) != 1:
                raise lost(claim)
            return self._failures.record(transaction, claim.queue, text)

        in_a_row = self._failures.beside(error, mark)
        return replace(claim, isolated=True), in_a_row

    def rest(self, claim: Claim, error: str) -> None:
        """Keep the error of messages that failed and wait for a verdict; the death of their holder is not counted."""
        command = self._store.claims_statement("rest", claim.queue)

        def note(transaction: Transaction, text: str) -> None:
            if transaction.count(command, error=text, **claim.fence) != 1:
                raise lost(claim)

        self._failures.beside(error, note)

    def give_back(self, claim: Claim) -> int:
        """Put a claim's messages back into the queue, for receivers that know nothing of claims.

        They keep their place, except on SQL Server, where they go to the end. Returns how many there were.
        """
        tables = self._store.tables(claim)
        dialect = self._database.dialect

        def restore(transaction: Transaction) -> int:
            self._store.pass_fence(transaction, claim)
            if is_nginn(tables.queue):
                return self._in_place.give_back(transaction, tables, claim)
            names = dialect.optional_columns(self._database.shapes.columns(transaction, tables.queue))
            command = dialect.statement(
                f"{tables.queue.layout}/claimed.return", queue=tables.queue, claimed=tables.claimed, **names
            )
            transaction.execute(command, claim_id=claim.claim_id)
            return transaction.count(self._store.statement(tables, "drop"), claim_id=claim.claim_id)

        return self._database.run(restore)

    def give_back_abandoned(self, queue: QueueTable) -> int:
        """Put the messages of all claims without a holder back into their queue, which claims will no longer serve."""
        tables, everything = self._book.claim_tables(queue), Bounds(2**31 - 1, DEFAULT_MAX_BYTES)
        lease = round(DEFAULT_LEASE_SECONDS * 1000)
        owner, returned = f"give back {uuid.uuid4()}", 0
        while claim := self._database.run(lambda own: self._take_over(own, tables, owner, everything, lease)):
            returned += self.give_back(claim)
        return returned

    def split(self, claim: Claim, keep: int) -> tuple[Claim, Claim]:
        """Cut a claim in two that go on independently: the first `keep` messages, and the rest."""
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
        """Cut a claim in two that go on independently: the rest, and the messages in these ranges of row versions.

        Both must have messages.
        """
        tables = self._store.tables(claim)
        return self._database.run(lambda own: self._store.separate(own, tables, claim, ranges))

    def marked(self, claim: Claim, text: str) -> list[int]:
        """The row versions of a claim's messages whose headers hold a text, looked for in the database."""
        tables = self._store.tables(claim)
        if is_nginn(tables.queue) and text == wire.quote(wire.RETRIES):
            return self._database.run(lambda own: self._in_place.tried_before(own, tables, claim), write=False)
        command = self._store.statement(tables, "marked")
        rows = self._database.run(lambda own: own.rows(command, claim_id=claim.claim_id, text=text), write=False)
        return [int(row[0]) for row in rows]

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
            if is_nginn(tables.queue):
                rows = read_in_place(transaction, self._database.dialect, tables, self._book.nginn, values)
            else:
                rows = list(transaction.rows(self._store.statement(tables, "read"), **values))
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
        return self._database.run(self._store.waiting, write=False)

    def _take_over(
        self, transaction: Transaction, tables: ClaimTables, owner: str, bounds: Bounds, lease: int
    ) -> Claim | None:
        while (claim := self._store.take_over(transaction, tables, owner, bounds, lease)) is not None:
            if (kept := self._kept(transaction, tables, claim, lease)) is not None:
                return kept
        return None

    def _kept(self, transaction: Transaction, tables: ClaimTables, claim: Claim, lease: int) -> Claim | None:
        """What is left of a claim that was taken over; other readers of an NGinn queue may have its messages by now."""
        return self._in_place.keep(transaction, tables, claim, lease) if is_nginn(tables.queue) else claim

    def _take_new(
        self,
        transaction: Transaction,
        tables: ClaimTables,
        owner: str,
        bounds: Bounds,
        lease_milliseconds: int,
        leaving: Leaving,
    ) -> Claim | None:
        """Take from the head of the queue until there is something to work on or the queue is empty."""
        dialect = self._database.dialect
        columns = self._database.shapes.columns(transaction, tables.queue)
        claim = Claim(str(uuid.uuid4()), tables.queue.canonical, owner, 1, 0, 0, 0)
        while not claim.messages:
            taken = dialect.take_claim(transaction, tables, columns, claim.claim_id, bounds)
            if taken.taken == 0:
                return None
            claim = replace(
                claim,
                messages=taken.messages,
                bytes=taken.bytes,
                first_row_version=int(taken.first_row_version or 0),
                expired=claim.expired + taken.taken - taken.messages,
            )
            if taken.messages and taken.may_forward:
                claim = self._forward(transaction, tables, claim, leaving)
        self._store.open(transaction, claim, lease_milliseconds)
        return claim

    def _forward(self, transaction: Transaction, tables: ClaimTables, claim: Claim, leaving: Leaving) -> Claim:
        """Send on what a mover left here for another queue, so that no transform ever sees it."""
        find, drop = (self._store.statement(tables, name) for name in ("forwarded", "drop_one"))
        messages: list[ReceivedMessage] = []
        for row in transaction.rows(find, claim_id=claim.claim_id, text=wire.FORWARD_DESTINATION):
            with contextlib.suppress(ValueError):
                messages.append(from_row(*row))
        elsewhere = [one for one in messages if self._forwarder.destination(tables.queue, one.headers) is not None]
        if not elsewhere:
            return claim
        leaving += [message.row_version for message in elsewhere]
        forwarded = self._forwarder.forward_all(transaction, tables.queue, elsewhere)
        for message in elsewhere:
            transaction.execute(drop, claim_id=claim.claim_id, row_version=message.row_version)
        left, size, first = self._store.sizes(transaction, tables, claim.claim_id)
        return replace(claim, messages=left, bytes=size, first_row_version=first, forwarded=claim.forwarded + forwarded)
