"""The tables behind claims: each method is one step inside a transaction that `Claims` opens."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.transport.addresses.queues import CLAIMS_TABLE, AddressBook, ClaimTables
from queue_pipeline.transport.claims.claim import Claim, ClaimStatus, RowsRead, differs, lost
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import Bounds
from queue_pipeline.transport.database.transaction import Transaction


class ClaimTable:
    """Reads and writes `QueueClaims` and `<queue>.Claimed`."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def tables(self, claim: Claim) -> ClaimTables:
        """The tables that a claim touches."""
        return self._book.claim_tables(self._book.resolve(claim.queue))

    def statement(self, tables: ClaimTables, name: str) -> Command:
        """A statement on a queue's claimed messages."""
        names = {"queue": tables.queue, "claimed": tables.claimed}
        return self._database.dialect.statement(f"{tables.queue.layout}/claim_messages.{name}", **names)

    def claims_statement(self, name: str, queue: str | None) -> Command:
        """A statement on the claims themselves; an error about it names the queue."""
        command = self._database.dialect.statement(f"claim_table.{name}", claims=self._book.own(CLAIMS_TABLE))
        return replace(command, queue=queue)

    def change(self, transaction: Transaction, name: str, claim: Claim, **values: object) -> None:
        """Run a statement on the row of a claim that its holder must still hold."""
        if transaction.count(self.claims_statement(name, claim.queue), **values, **claim.fence) != 1:
            raise lost(claim)

    def open(self, transaction: Transaction, claim: Claim, lease_milliseconds: int) -> None:
        """Write the row of a new claim."""
        transaction.execute(
            self.claims_statement("open", claim.queue),
            claim_id=claim.claim_id,
            queue=claim.queue,
            owner=claim.owner,
            messages=claim.messages,
            bytes=claim.bytes,
            first=claim.first_row_version,
            lease=lease_milliseconds,
        )

    def pass_fence(self, transaction: Transaction, claim: Claim) -> None:
        """End a claim if it is still its holder's."""
        self.change(transaction, "fence", claim)

    def release_owner(self, transaction: Transaction, owner: str, *, died: bool) -> list[Claim]:
        """Clear one owner wherever it stands; returns the claims as they were held."""
        rows = transaction.rows(self.claims_statement("release_owner", None), died=died, owner=owner)
        return [_claim((claim_id, queue, owner, *figures)) for claim_id, queue, *figures in rows]

    def fail(self, transaction: Transaction, claim: Claim, error: str) -> Claim:
        """Count a failure of these messages, and keep what went wrong."""
        command = self.claims_statement("fail", claim.queue)
        rows = transaction.rows(command, error=error, **claim.fence)
        if len(rows) != 1:
            raise lost(claim)
        return replace(claim, failures=int(rows[0][0]))

    def adopt(self, transaction: Transaction, claim: Claim, owner: str, lease_milliseconds: int) -> Claim | None:
        """Take over this one claim, unless another owner holds it by now."""
        command = self.claims_statement("adopt", claim.queue)
        rows = transaction.rows(command, new_owner=owner, lease=lease_milliseconds, **claim.fence)
        return _claim(rows[0]) if rows else None

    def take_over(
        self, transaction: Transaction, tables: ClaimTables, owner: str, bounds: Bounds, lease_milliseconds: int
    ) -> Claim | None:
        """The oldest claim without a living owner, cut to size if it is larger than asked for."""
        queue = tables.queue.canonical
        command = self.claims_statement("take_over", queue)
        rows = transaction.rows(command, new_owner=owner, lease=lease_milliseconds, queue=queue)
        if not rows:
            return None
        claim = _claim(rows[0])
        if claim.messages <= bounds.messages and claim.bytes <= bounds.bytes:
            return claim
        values = {"messages": bounds.messages, "bytes": bounds.bytes, "claim_id": claim.claim_id}
        parts = transaction.rows(self.statement(tables, "parts"), **values)
        if len(parts) < 2:
            return claim
        first, rest = self.split_at(transaction, tables, claim, parts[0][1])
        self.change(transaction, "release", rest, died=False)
        return first

    def split_at(
        self, transaction: Transaction, tables: ClaimTables, claim: Claim, last_kept: int
    ) -> tuple[Claim, Claim]:
        """Move the messages after a row version into a claim of their own."""
        other = str(uuid.uuid4())
        command = self.statement(tables, "split")
        transaction.execute(command, new_claim_id=other, claim_id=claim.claim_id, last=last_kept)
        return self._branch(transaction, tables, claim, other)

    def separate(
        self, transaction: Transaction, tables: ClaimTables, claim: Claim, ranges: Sequence[tuple[int, int]]
    ) -> tuple[Claim, Claim]:
        """Move the messages of some ranges of row versions into a claim of their own; second in what is returned."""
        other, command = str(uuid.uuid4()), self.statement(tables, "separate")
        for first, last in ranges:
            transaction.execute(command, new_claim_id=other, claim_id=claim.claim_id, first=first, last=last)
        return self._branch(transaction, tables, claim, other)

    def _branch(self, transaction: Transaction, tables: ClaimTables, claim: Claim, other: str) -> tuple[Claim, Claim]:
        messages, size, first = self.sizes(transaction, tables, other)
        branch, ids = self.claims_statement("branch", claim.queue), {"new_claim_id": other, "claim_id": claim.claim_id}
        transaction.execute(branch, messages=messages, bytes=size, first=first, **ids)
        kept = self.shrink(transaction, tables, claim)
        if kept is None:
            raise lost(claim)
        return kept, replace(kept, claim_id=other, messages=messages, bytes=size, first_row_version=first, expired=0)

    def shrink(self, transaction: Transaction, tables: ClaimTables, claim: Claim) -> Claim | None:
        """Bring the claim's row in line with the messages that are left; an empty claim is ended."""
        messages, size, first = self.sizes(transaction, tables, claim.claim_id)
        if messages == 0:
            self.pass_fence(transaction, claim)
            return None
        self.change(transaction, "shrink", claim, messages=messages, bytes=size, first=first)
        return replace(claim, messages=messages, bytes=size, first_row_version=first, failures=0)

    def sizes(self, transaction: Transaction, tables: ClaimTables, claim_id: str) -> tuple[int, int, int]:
        """Messages, bytes and first row version of what is left in a claim."""
        row = transaction.rows(self.statement(tables, "sizes"), claim_id=claim_id)[0]
        return int(row[0]), int(row[1]), int(row[2] or 0)

    def held_rows(self, transaction: Transaction, tables: ClaimTables, claim: Claim) -> RowsRead:
        """Which messages a claim holds now."""
        row = transaction.rows(self.statement(tables, "figures"), claim_id=claim.claim_id)[0]
        messages, first, last, low_bits = (None if value is None else int(value) for value in row)
        return RowsRead(messages or 0, first, last, low_bits or 0)

    def check_read(self, transaction: Transaction, tables: ClaimTables, claim: Claim, read: RowsRead) -> None:
        """Make sure, in the transaction that completes a claim, that it holds what was read of it."""
        held = self.held_rows(transaction, tables, claim)
        if held != read:
            raise differs(claim, read, held)

    def other_size(self, transaction: Transaction, claim: Claim, messages: int) -> QueuePipelineError:
        """Why a claim holds another number of messages than its holder knows of."""
        known = ((status.claim_id, status.owner, status.generation) for status in self.list(transaction, claim.queue))
        if (claim.claim_id, claim.owner, claim.generation) not in known:
            return lost(claim)
        return differs(claim, f"{messages:,} messages", f"{claim.messages:,} by its count")

    def marked(self, transaction: Transaction, tables: ClaimTables, claim: Claim, text: str) -> list[int]:
        """The row versions of a claim's messages whose headers hold a text, looked for in the database."""
        rows = transaction.rows(self.statement(tables, "marked"), claim_id=claim.claim_id, text=text)
        return [int(row[0]) for row in rows]

    def list(self, transaction: Transaction, queue: str | None) -> list[ClaimStatus]:
        """Every claim of a queue, or of all."""
        rows = transaction.rows(self.claims_statement("list", queue), queue=queue or "")
        return [_status(row) for row in rows]


def _claim(row: Sequence[Any]) -> Claim:
    claim_id, queue, owner, attempt, messages, size, first, failures, isolated = row
    figures = (attempt, messages, size, first)
    return Claim(str(claim_id).lower(), queue, owner, *figures, failures=failures, isolated=bool(isolated))


def _status(row: Sequence[Any]) -> ClaimStatus:
    claim_id, queue, owner, attempt, messages, size, first, lease, age, failures, error, isolated = row
    figures = (attempt, messages, size, lease / 1000, age / 1000, failures, error, first)
    return ClaimStatus(str(claim_id).lower(), queue, owner, *figures, isolated=bool(isolated))
