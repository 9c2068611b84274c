"""Completion: the one transaction that ends a claim together with all that came of its messages.

How messages end in their tables is in `layouts/nservicebus/claim_rows.py` and `layouts/nginn/claim_rows.py`: `finish`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, NamedTuple

from queue_pipeline.errors import ClaimLostError, CommitUnknownError, LockTimeoutError
from queue_pipeline.transport.claims.claim import Claim, RowsRead
from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.claims.outbox import Outbox, StagedGroup
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.layout import Layouts, RefusedCompletionError
from queue_pipeline.transport.messages.message import Operation
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline.transport.send import Sender, count

if TYPE_CHECKING:
    from sqlalchemy import Connection

COMMIT_TRIES = 3


class FailedRow(NamedTuple):
    """What becomes of one message that failed, where failed ones stay in their queue: see `Layout.keeps_failed`."""

    row_version: int
    error: str
    retry_milliseconds: int | None = None
    """It is tried again after this time; None: it has failed for good."""


@dataclass(frozen=True, slots=True)
class Completion:
    """All that came of a claim's messages, written in one transaction or not at all."""

    claim: Claim
    operations: Iterable[Operation] = ()
    work: Callable[[Connection], object] | None = None
    """The caller's own statements; called again if the database picks the transaction as a deadlock victim."""
    sends: Sequence[MessageColumns] = ()
    unreadable: Sequence[int] = ()
    """Row versions of messages whose headers cannot be read; they go to the error queue byte for byte."""
    staged: Sequence[StagedGroup] = ()
    """Results that lie in the outbox; if a single one of them is not there, nothing is done."""
    failed: Sequence[FailedRow] = ()
    """Messages that failed, where they stay in their queue; copies for an error queue are among the sends."""
    _: KW_ONLY
    read: RowsRead | None
    """The messages that the results are made of, unreadable and failed ones among them: if the claim holds others,
    nothing is done. None: the caller read nothing, and the messages are deleted unseen."""


class Completer:
    """Completes claims."""

    def __init__(self, database: Database, store: ClaimTable, layouts: Layouts, sender: Sender, outbox: Outbox) -> None:
        self._database = database
        self._store = store
        self._layouts = layouts
        self._sender = sender
        self._outbox = outbox

    def complete(self, done: Completion) -> int:
        """End a claim: fence, own work, sends and the end of its messages; returns how many messages were sent."""
        claim, tables = done.claim, self._store.tables(done.claim)
        prepared = [*self._sender.prepare(done.operations), *self._sender.prepare_columns(done.sends)]

        def finish(transaction: Transaction) -> int:
            self._store.pass_fence(transaction, claim)
            if done.read is not None:
                self._store.check_read(transaction, tables, claim, done.read)
            if done.work is not None:
                with transaction.scope():
                    done.work(transaction.connection)
            sent = self._sender.write(transaction, prepared) + self._outbox.deliver(transaction, claim, done.staged)
            self._layouts.of(tables.queue).claims.finish(transaction, tables, done)
            self._outbox.clear(transaction, claim)
            return sent

        try:
            sent = self._run_once(finish, claim)
        except RefusedCompletionError as refusal:
            self._follow_up(claim, refusal)
            raise refusal.error from None
        return count(prepared) + sum(group.messages for group in done.staged) if sent is None else sent

    def _run_once(self, finish: Callable[[Transaction], int], claim: Claim) -> int | None:
        """What `finish` returns; None if its commit was done, but the answer was lost."""
        is_unknown = False
        for tried in range(1, COMMIT_TRIES + 1):
            try:
                return self._database.run(finish)
            except LockTimeoutError:
                # The work is done, and worth a longer wait: others write to the same rows of the user's tables.
                if tried == COMMIT_TRIES:
                    raise
            except (CommitUnknownError, ClaimLostError) as error:
                # A commit whose answer was lost may be done after the first look at the claim: then it is gone here.
                is_unknown = is_unknown or isinstance(error, CommitUnknownError)
                if is_unknown and self._is_ended(claim):
                    return None
                if isinstance(error, ClaimLostError) or tried == COMMIT_TRIES:
                    raise
        raise AssertionError("unreachable")

    def _is_ended(self, claim: Claim) -> bool:
        """Whether a commit whose answer was lost was done: then the claim's row is gone, and its results are sent."""
        claims = self._database.run(lambda own: self._store.list(own, claim.queue), write=False)
        return all(status.claim_id != claim.claim_id for status in claims)

    def _follow_up(self, claim: Claim, refusal: RefusedCompletionError) -> None:
        def end(transaction: Transaction) -> None:
            self._store.pass_fence(transaction, claim)
            refusal.follow_up(transaction)
            self._outbox.clear(transaction, claim)

        self._database.run(end)
