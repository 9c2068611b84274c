"""Claims: a batch held durably, outside any transaction, until it is completed together with its results.

A claim is a row in `QueueClaims` and the messages that were moved from the queue into `<queue>.Claimed`. Its owner and
attempt are the fence: whoever completes it must still be the one who holds it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from queue_pipeline.transport.addressing import CLAIMS_TABLE, METRICS_TABLE, AddressBook, ClaimTables, QueueTable
from queue_pipeline.transport.database import CommitUnknownError, Database, Transaction
from queue_pipeline.transport.dialect import Bounds
from queue_pipeline.transport.errors import ClaimLostError, ConfigurationError
from queue_pipeline.transport.forwarding import Forwarder
from queue_pipeline.transport.headers import FORWARD_DESTINATION
from queue_pipeline.transport.messages import Operation, ReceivedMessage, from_row
from queue_pipeline.transport.send import Sender
from queue_pipeline.transport.statements import Command

DEFAULT_LEASE_SECONDS = 300.0
LONGEST_LEASE_SECONDS = 24 * 60 * 60.0
DEFAULT_MAX_BYTES = 1 << 40
COMMIT_TRIES = 3
LAST_ROW_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Claim:
    """A batch in work: small, serialisable, and all that another process needs to go on with it."""

    claim_id: str
    queue: str
    owner: str
    attempt: int
    messages: int
    bytes: int
    first_row_version: int
    expired: int = 0
    forwarded: int = 0


@dataclass(frozen=True, slots=True)
class ClaimStatus:
    """A claim as the database has it; a negative lease has run out, no owner means that it was given back."""

    claim_id: str
    queue: str
    owner: str | None
    attempt: int
    messages: int
    bytes: int
    lease_seconds: float
    age_seconds: float


class Claims:
    """Claim, renew, complete, release, split and list."""

    def __init__(
        self, database: Database, book: AddressBook, sender: Sender, forwarder: Forwarder, *, metrics: bool = True
    ) -> None:
        self._database = database
        self._book = book
        self._sender = sender
        self._forwarder = forwarder
        self._metrics = metrics
        self._metrics_table: QueueTable | None = None

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
        _check_claim(queue, owner, max_messages, max_bytes, lease_seconds)
        bounds = Bounds(max_messages, max_bytes)
        tables = self._book.claim_tables(queue)
        return self._database.run(
            lambda transaction: self._take_over(transaction, tables, owner, bounds, lease_seconds)
            or self._take_new(transaction, tables, owner, bounds, lease_seconds)
        )

    def renew(self, claim: Claim, lease_seconds: float = DEFAULT_LEASE_SECONDS) -> None:
        """Hold a claim for longer, counted from now on the database's clock."""
        _check_lease(claim.queue, lease_seconds)
        milliseconds = round(lease_seconds * 1000)
        command = self._claims_statement("claim_renew", claim.queue)
        if self._database.run(lambda own: own.count(command, (milliseconds, *_fence(claim)))) != 1:
            raise _lost(claim)

    def release(self, claim: Claim) -> None:
        """Give a claim back at once; the next claim on its queue takes it over, at the next attempt."""
        command = self._claims_statement("claim_release", claim.queue)
        if self._database.run(lambda own: own.count(command, _fence(claim))) != 1:
            raise _lost(claim)

    def give_back(self, claim: Claim) -> int:
        """Put a claim's messages back into the queue, for receivers that know nothing of claims.

        They keep their place, except on SQL Server, where they go to the end. Returns how many there were.
        """
        tables = self._tables(claim)
        dialect = self._database.dialect

        def restore(transaction: Transaction) -> int:
            self._pass_fence(transaction, claim)
            names = dialect.optional_columns(self._database.shapes.columns(transaction, tables.queue))
            command = dialect.statement(
                f"{tables.queue.layout}/claim_return", queue=tables.queue, claimed=tables.claimed, **names
            )
            transaction.execute(command, (claim.claim_id,))
            return transaction.count(self._statement(tables, "claim_drop"), (claim.claim_id,))

        return self._database.run(restore)

    def complete(
        self,
        claim: Claim,
        operations: Iterable[Operation] = (),
        work: Callable[[Transaction], None] | None = None,
    ) -> int:
        """End a claim: fence, own work, sends and the deletion of its messages in one transaction, all or none.

        `work` runs the caller's own statements in that transaction; it is called again if the database picks the
        transaction as a deadlock victim. Returns how many messages were sent.
        """
        prepared = self._sender.prepare(operations)
        tables = self._tables(claim)

        def finish(transaction: Transaction) -> int:
            held = self._pass_fence(transaction, claim)
            if work is not None:
                work(transaction)
            sent = self._sender.write(transaction, prepared)
            transaction.execute(self._statement(tables, "claim_drop"), (claim.claim_id,))
            self._record(transaction, claim, sent, held)
            return sent

        for _ in range(COMMIT_TRIES):
            try:
                return self._database.run(finish)
            except CommitUnknownError:
                # The claim's row says which way it went: gone means that it was ended, once, with its results.
                if self._is_gone(claim):
                    return sum(len(rows) for _, _, rows in prepared)
        raise _lost(claim)

    def split(self, claim: Claim, keep: int) -> tuple[Claim, Claim]:
        """Cut a claim in two that go on independently: the first `keep` messages, and the rest."""
        if not 0 < keep < claim.messages:
            raise ConfigurationError(
                f"claim {claim.claim_id} of {claim.queue} has {claim.messages} messages; keep at least one and fewer than all"
            )
        tables = self._tables(claim)
        middle = self._statement(tables, "claim_middle")

        def cut(transaction: Transaction) -> tuple[Claim, Claim]:
            rows = transaction.rows(middle, (claim.claim_id, keep - 1))
            if not rows:
                raise _lost(claim)
            return self._split_at(transaction, tables, claim, rows[0][0])

        return self._database.run(cut)

    def dead_letter(self, claim: Claim, row_versions: Sequence[int]) -> Claim | None:
        """Move messages with unreadable headers to the error queue byte for byte; None when nothing is left."""
        tables = self._tables(claim)
        read = self._statement(tables, "claim_read")
        drop = self._statement(tables, "claim_drop_one")

        def move(transaction: Transaction) -> Claim | None:
            for row_version in row_versions:
                for row in transaction.rows(read, (claim.claim_id, row_version, row_version)):
                    self._forwarder.dead_letter(transaction, str(row[0]), row[2], row[3])
                    transaction.execute(drop, (claim.claim_id, row_version))
            return self._shrink(transaction, tables, claim)

        return self._database.run(move)

    def messages(self, claim: Claim) -> tuple[list[ReceivedMessage], list[tuple[int, str]]]:
        """A small claim's messages as objects, and its poison as (row version, what is wrong)."""
        rows = self._database.run(
            lambda own: own.rows(
                self._statement(self._tables(claim), "claim_read"), (claim.claim_id, 0, LAST_ROW_VERSION)
            ),
            write=False,
        )
        good: list[ReceivedMessage] = []
        poison: list[tuple[int, str]] = []
        for row in rows:
            try:
                good.append(from_row(*row))
            except ValueError as error:
                poison.append((int(row[1]), str(error)))
        for message in good:
            message.headers.pop(FORWARD_DESTINATION, None)
        return good, poison

    def list(self, queue: QueueTable | None = None) -> list[ClaimStatus]:
        """Every claim of a queue, or of all."""
        name = queue.canonical if queue else ""
        rows = self._database.run(lambda own: own.rows(self._claims_statement("claim_list", name or None), (name, name)), write=False)
        return [
            ClaimStatus(str(row[0]).lower(), *row[1:6], lease_seconds=row[7] / 1000, age_seconds=row[8] / 1000)
            for row in rows
        ]

    def find(self, claim_id: str) -> Claim | None:
        """A claim that has an owner, by its id: for tools that act on what they did not claim themselves."""
        for status in self.list():
            if status.claim_id == claim_id.lower() and status.owner is not None:
                return Claim(
                    status.claim_id, status.queue, status.owner, status.attempt, status.messages, status.bytes, 0
                )
        return None

    def _take_over(
        self, transaction: Transaction, tables: ClaimTables, owner: str, bounds: Bounds, lease_seconds: float
    ) -> Claim | None:
        parameters = (owner, round(lease_seconds * 1000), tables.queue.canonical)
        rows = transaction.rows(self._claims_statement("claim_take_over", tables.queue.canonical), parameters)
        if not rows:
            return None
        claim = Claim(str(rows[0][0]).lower(), *rows[0][1:7])
        if claim.messages <= bounds.messages and claim.bytes <= bounds.bytes:
            return claim
        parts = transaction.rows(self._statement(tables, "claim_parts"), (*bounds, claim.claim_id))
        if len(parts) < 2:
            return claim
        first, rest = self._split_at(transaction, tables, claim, parts[0][1])
        transaction.execute(self._claims_statement("claim_release", claim.queue), _fence(rest))
        return first

    def _take_new(
        self, transaction: Transaction, tables: ClaimTables, owner: str, bounds: Bounds, lease_seconds: float
    ) -> Claim | None:
        dialect = self._database.dialect
        columns = self._database.shapes.columns(transaction, tables.queue)
        claim_id = str(uuid.uuid4())
        expired = forwarded = 0
        while True:
            taken = dialect.take_claim(transaction, tables, columns, claim_id, bounds)
            expired += taken.taken - taken.messages
            if taken.taken == 0:
                return None
            claim = Claim(
                claim_id,
                tables.queue.canonical,
                owner,
                1,
                taken.messages,
                taken.bytes,
                int(taken.first_row_version or 0),
                expired,
            )
            if taken.messages:
                claim = self._forward(transaction, tables, claim)
                forwarded += claim.forwarded
            if claim.messages:
                break
        transaction.execute(
            self._claims_statement("claim_open", claim.queue),
            (
                claim_id,
                claim.queue,
                owner,
                claim.messages,
                claim.bytes,
                claim.first_row_version,
                round(lease_seconds * 1000),
            ),
        )
        return replace(claim, forwarded=forwarded)

    def _forward(self, transaction: Transaction, tables: ClaimTables, claim: Claim) -> Claim:
        """Send on what a mover left here for another queue, so that no transform ever sees it."""
        rows = transaction.rows(self._statement(tables, "claim_forwarded"), (claim.claim_id, FORWARD_DESTINATION))
        forwarded = 0
        for row in rows:
            try:
                message = from_row(*row)
            except ValueError:
                continue
            if self._forwarder.forward(transaction, tables.queue, message):
                transaction.execute(self._statement(tables, "claim_drop_one"), (claim.claim_id, message.row_version))
                forwarded += 1
        if not forwarded:
            return claim
        messages, size, first = self._sizes(transaction, tables, claim.claim_id)
        return replace(claim, messages=messages, bytes=size, first_row_version=first or 0, forwarded=forwarded)

    def _split_at(
        self, transaction: Transaction, tables: ClaimTables, claim: Claim, last_kept: int
    ) -> tuple[Claim, Claim]:
        other = str(uuid.uuid4())
        transaction.execute(self._statement(tables, "claim_split"), (other, claim.claim_id, last_kept))
        messages, size, first = self._sizes(transaction, tables, other)
        transaction.execute(
            self._claims_statement("claim_branch", claim.queue), (other, messages, size, first, claim.claim_id)
        )
        kept = self._shrink(transaction, tables, claim)
        if kept is None:
            raise _lost(claim)
        rest = replace(claim, claim_id=other, messages=messages, bytes=size, first_row_version=first or 0)
        return kept, rest

    def _shrink(self, transaction: Transaction, tables: ClaimTables, claim: Claim) -> Claim | None:
        """Bring the claim's row in line with the messages that are left; an empty claim is ended."""
        messages, size, first = self._sizes(transaction, tables, claim.claim_id)
        if messages == 0:
            self._pass_fence(transaction, claim)
            return None
        changed = (messages, size, first, *_fence(claim))
        if transaction.count(self._claims_statement("claim_shrink", claim.queue), changed) != 1:
            raise _lost(claim)
        return replace(claim, messages=messages, bytes=size, first_row_version=first or 0)

    def _sizes(self, transaction: Transaction, tables: ClaimTables, claim_id: str) -> tuple[int, int, int | None]:
        row = transaction.rows(self._statement(tables, "claim_sizes"), (claim_id, 0, LAST_ROW_VERSION))[0]
        return int(row[0]), int(row[1]), row[2]

    def _pass_fence(self, transaction: Transaction, claim: Claim) -> int:
        rows = transaction.rows(self._claims_statement("claim_fence", claim.queue), _fence(claim))
        if len(rows) != 1:
            raise _lost(claim)
        return int(rows[0][0])

    def _record(self, transaction: Transaction, claim: Claim, sent: int, held: int) -> None:
        """Keep the figures of a completed claim, where the table for them was installed."""
        if not self._metrics:
            return
        if self._metrics_table is None:
            table = self._book.own(METRICS_TABLE)
            self._metrics = bool(transaction.rows(self._database.dialect.statement("table_exists", queue=table)))
            if not self._metrics:
                return
            self._metrics_table = table
        command = self._database.dialect.statement("metrics_record", queue=self._metrics_table, metrics=self._metrics_table)
        figures = (claim.attempt, claim.messages, claim.bytes, sent, held)
        transaction.execute(command, (claim.claim_id, claim.queue, claim.owner, *figures))

    def _is_gone(self, claim: Claim) -> bool:
        return all(status.claim_id != claim.claim_id for status in self.list())

    def _tables(self, claim: Claim) -> ClaimTables:
        return self._book.claim_tables(self._book.resolve(claim.queue))

    def _statement(self, tables: ClaimTables, name: str) -> Command:
        names = {"queue": tables.queue, "claimed": tables.claimed}
        return self._database.dialect.statement(f"{tables.queue.layout}/{name}", **names)

    def _claims_statement(self, name: str, queue: str | None) -> Command:
        command = self._database.dialect.statement(name, claims=self._book.own(CLAIMS_TABLE))
        return Command(command.text, queue)


def _fence(claim: Claim) -> tuple[str, str, int]:
    return claim.claim_id, claim.owner, claim.attempt


def _lost(claim: Claim) -> ClaimLostError:
    return ClaimLostError(
        f"claim {claim.claim_id} of {claim.queue} is no longer held by {claim.owner} at attempt {claim.attempt}: its lease "
        "ran out and another took it, or it was released; nothing was sent, whoever holds it now goes on"
    )


def _check_claim(queue: QueueTable, owner: str, max_messages: int, max_bytes: int, lease_seconds: float) -> None:
    if max_messages < 1:
        raise ConfigurationError(f"queue {queue}: a batch of {max_messages} messages; ask for at least one")
    if max_bytes < 1:
        raise ConfigurationError(f"queue {queue}: a batch of {max_bytes} bytes; ask for at least one")
    if not owner or len(owner) > 200:
        raise ConfigurationError(f"queue {queue}: the owner of a claim needs a name of 1 to 200 characters")
    _check_lease(queue.canonical, lease_seconds)


def _check_lease(queue: str, lease_seconds: float) -> None:
    if not 0 < lease_seconds <= LONGEST_LEASE_SECONDS:
        raise ConfigurationError(
            f"queue {queue}: a lease of {lease_seconds} s; choose more than 0 and at most {LONGEST_LEASE_SECONDS:.0f}"
        )
