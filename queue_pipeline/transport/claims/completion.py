"""Completion: the one transaction that ends a claim together with all that came of its messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from queue_pipeline.transport.claims.claim import Claim, RowsRead, differs
from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.claims.outbox import Outbox, StagedGroup
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.errors import ClaimLostError, CommitUnknownError, LockTimeoutError
from queue_pipeline.transport.layouts.nginn.claim_rows import FailedRow, InPlaceClaims, OutOfTurn
from queue_pipeline.transport.layouts.nginn.rows import is_nginn
from queue_pipeline.transport.layouts.nservicebus.forwarding import Forwarder
from queue_pipeline.transport.message_columns import MessageColumns
from queue_pipeline.transport.messages import Operation
from queue_pipeline.transport.queues import ClaimTables
from queue_pipeline.transport.send import AnyShipment, Sender, count

if TYPE_CHECKING:
    from sqlalchemy import Connection

COMMIT_TRIES = 3


class Completer:
    """Completes claims, and moves unreadable messages out of them."""

    def __init__(
        self,
        database: Database,
        store: ClaimTable,
        in_place: InPlaceClaims,
        sender: Sender,
        forwarder: Forwarder,
        outbox: Outbox,
    ) -> None:
        self._database = database
        self._store = store
        self._in_place = in_place
        self._sender = sender
        self._forwarder = forwarder
        self._outbox = outbox

    def complete(
        self,
        claim: Claim,
        operations: Iterable[Operation] = (),
        work: Callable[[Connection], object] | None = None,
        ready: Sequence[MessageColumns] = (),
        dead_letters: Sequence[int] = (),
        staged: Sequence[StagedGroup] = (),
        marks: Sequence[FailedRow] = (),
        *,
        read: RowsRead | None,
    ) -> int:
        """End a claim: fence, own work, sends and the deletion of its messages in one transaction, all or none.

        `read` are the messages that the results are made of, dead letters and failed ones among them: if the claim
        holds others, nothing is done. None: the caller read nothing, and the messages are deleted unseen. `work` gets
        SQLAlchemy's connection and runs the caller's own statements in that transaction; it is called again if the
        database picks the transaction as a deadlock victim. `ready` are messages as columns, `dead_letters` the row
        versions of messages whose headers cannot be read: they go to the error queue byte for byte. `staged` are
        results that lie in the outbox; if a single one of them is not there, nothing is done. `marks` say what becomes
        of messages of an NGinn queue that failed. Returns how many messages were sent.
        """
        prepared: list[AnyShipment] = [*self._sender.prepare(operations), *self._sender.prepare_columns(ready)]
        tables = self._store.tables(claim)

        def finish(transaction: Transaction) -> int:
            self._store.pass_fence(transaction, claim)
            if read is not None:
                self._store.check_read(transaction, tables, claim, read)
            if work is not None:
                with transaction.scope():
                    work(transaction.connection)
            sent = self._sender.write(transaction, prepared) + self._outbox.deliver(transaction, claim, staged)
            if is_nginn(tables.queue):
                self._in_place.complete(transaction, tables, claim, marks, dead_letters)
            else:
                self._delete(transaction, tables, claim, dead_letters, read)
            self._outbox.clear(transaction, claim)
            return sent

        is_unknown = False
        for tried in range(1, COMMIT_TRIES + 1):
            try:
                return self._database.run(finish)
            except OutOfTurn as out:
                self._put_in_line(claim, tables, out.rows)
                raise _out_of_turn(claim, len(out.rows)) from None
            except LockTimeoutError:
                # The work is done, and worth a longer wait: others write to the same rows of the user's tables.
                if tried == COMMIT_TRIES:
                    raise
            except (CommitUnknownError, ClaimLostError) as error:
                # A commit whose answer was lost may be done after the first look at the claim: then it is gone here.
                is_unknown = is_unknown or isinstance(error, CommitUnknownError)
                if is_unknown and self._is_ended(claim):
                    return count(prepared) + sum(group.messages for group in staged)
                if isinstance(error, ClaimLostError) or tried == COMMIT_TRIES:
                    raise
        raise AssertionError("unreachable")

    def dead_letter(self, claim: Claim, row_versions: Sequence[int]) -> Claim | None:
        """Move messages with unreadable headers to the error queue byte for byte; None when nothing is left."""
        tables = self._store.tables(claim)

        def move(transaction: Transaction) -> Claim | None:
            if is_nginn(tables.queue):
                self._in_place.mark(transaction, tables, claim, (), row_versions)
            else:
                self._move_dead_letters(transaction, tables, claim, row_versions)
            return self._store.shrink(transaction, tables, claim)

        return self._database.run(move)

    def _delete(
        self,
        transaction: Transaction,
        tables: ClaimTables,
        claim: Claim,
        dead_letters: Sequence[int],
        read: RowsRead | None,
    ) -> None:
        """Delete a claim's messages: as many as were read, dead letters among them."""
        deleted = self._move_dead_letters(transaction, tables, claim, dead_letters)
        deleted += transaction.count(self._store.statement(tables, "drop"), claim_id=claim.claim_id)
        if read is not None and deleted != read.messages:
            raise differs(claim, read, f"{deleted:,} messages")

    def _move_dead_letters(
        self, transaction: Transaction, tables: ClaimTables, claim: Claim, row_versions: Sequence[int]
    ) -> int:
        """Move messages to the error queue byte for byte; returns how many there were."""
        drop, moved = self._store.statement(tables, "drop_one"), 0
        for row_version in row_versions:
            self._forwarder.dead_letter_claimed(transaction, tables, claim, row_version)
            moved += transaction.count(drop, claim_id=claim.claim_id, row_version=row_version)
        return moved

    def _is_ended(self, claim: Claim) -> bool:
        """Whether a commit whose answer was lost was done: then the claim's row is gone, and its results are sent."""
        claims = self._database.run(lambda own: self._store.list(own, claim.queue), write=False)
        return all(status.claim_id != claim.claim_id for status in claims)

    def _put_in_line(self, claim: Claim, tables: ClaimTables, rows: Sequence[int]) -> None:
        """End a claim without results: messages that were out of turn wait, the others are ready again."""

        def wait(transaction: Transaction) -> None:
            self._store.pass_fence(transaction, claim)
            self._in_place.put_in_line(transaction, tables, claim, rows)
            self._outbox.clear(transaction, claim)

        self._database.run(wait)


def _out_of_turn(claim: Claim, messages: int) -> ClaimLostError:
    return ClaimLostError(
        f"claim {claim.claim_id} of {claim.queue} was ended without results: {messages} of its messages belong to a "
        "sequence in which an earlier one has not been processed; they wait for it, and the others are ready again"
    )
