"""Receive: a batch taken from the head of a queue, under one of the four transaction modes."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queue_pipeline.errors import ConfigurationError, QueuePipelineError, check_positive
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.claims.claim import Claim, RowsRead
from queue_pipeline.transport.claims.claims import Claims
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.layout import Layouts
from queue_pipeline.transport.layouts.refused_rows import Leaving, is_refusal, past_refusals
from queue_pipeline.transport.messages.message import Operation, ReceivedMessage, TransactionMode
from queue_pipeline.transport.send import Sender

if TYPE_CHECKING:
    from sqlalchemy import Connection

logger = logging.getLogger(__name__)


@dataclass
class Received:
    """The messages of one receive, and what its mode lets the caller do with them."""

    queue: QueueTable
    mode: TransactionMode
    sender: Sender
    messages: list[ReceivedMessage] = field(default_factory=list)
    expired: int = 0
    poisoned: int = 0
    forwarded: int = 0
    _transaction: Transaction | None = None

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def send(self, operations: Iterable[Operation], *, isolated: bool = False) -> int:
        """Send: with the receive where the mode says so, else at once; `isolated` sends at once in every mode."""
        atomic = self.mode in (TransactionMode.SENDS_ATOMIC_WITH_RECEIVE, TransactionMode.TRANSACTION_SCOPE)
        return self.sender.dispatch(operations, self._transaction if atomic and not isolated else None)

    @property
    def connection(self) -> Connection:
        """The receiving transaction, for statements of the caller's own (mode transaction_scope only)."""
        if self.mode is not TransactionMode.TRANSACTION_SCOPE or self._transaction is None:
            raise ConfigurationError(
                f"queue {self.queue}: own statements need the mode transaction_scope, not {self.mode.value}"
            )
        return self._transaction.connection


class Receiver:
    """Takes messages off a queue by deleting them."""

    def __init__(self, database: Database, sender: Sender, claims: Claims, layouts: Layouts) -> None:
        self._database = database
        self._sender = sender
        self._claims = claims
        self._layouts = layouts

    @contextlib.contextmanager
    def receive(self, queue: QueueTable, max_messages: int, mode: TransactionMode) -> Iterator[Received]:
        """Up to `max_messages` of the oldest messages that no other receiver holds; none if the queue is empty.

        Leaving the block commits; an exception rolls back, except in mode `unreliable`, which commits before the block.
        """
        check_positive(queue, max_messages, f"a batch of {max_messages} messages")
        batch = Received(queue, mode, self._sender)
        layout = self._layouts.of(queue)
        send_on = functools.partial(layout.claims.send_on, queue)
        if mode is TransactionMode.UNRELIABLE:
            take = functools.partial(self._fill, batch=batch, max_messages=max_messages)
            _, left = past_refusals(self._database, take, send_on)
            batch.forwarded += left
            yield batch
        elif mode is TransactionMode.RECEIVE_ONLY and not self._database.dialect.locks_rows:
            with layout.receiving.attempts(queue, batch.messages), self._by_claim(batch, max_messages):
                yield batch
        else:
            with (
                layout.receiving.attempts(queue, batch.messages),
                self._open(batch, max_messages, send_on) as transaction,
            ):
                batch._transaction = transaction
                with transaction.scope() if mode is TransactionMode.TRANSACTION_SCOPE else contextlib.nullcontext():
                    yield batch

    @contextlib.contextmanager
    def _open(
        self, batch: Received, max_messages: int, send_on: Callable[[Sequence[int]], int]
    ) -> Iterator[Transaction]:
        """The receiving transaction, repeated without forwarded messages that their destination refuses.

        A refusal at the commit fails this receive; the next one is without them.
        """
        left, is_open = 0, False
        while not is_open:
            leaving: Leaving = []
            try:
                with self._database.transaction() as transaction:
                    self._fill(transaction, leaving, batch, max_messages)
                    batch.forwarded += left
                    is_open = True
                    yield transaction
            except QueuePipelineError as error:
                if not leaving or not is_refusal(error):
                    raise
                left += send_on(leaving)
                if is_open:
                    raise

    def _fill(self, transaction: Transaction, leaving: Leaving, batch: Received, max_messages: int) -> None:
        taken = self._layouts.of(batch.queue).receiving.take(transaction, batch.queue, max_messages, leaving)
        batch.messages[:], batch.expired, batch.forwarded, batch.poisoned = taken

    @contextlib.contextmanager
    def _by_claim(self, batch: Received, max_messages: int) -> Iterator[None]:
        """Hold a claim instead of a transaction where one writer locks the whole database."""
        claim = self._claim_messages(batch, max_messages)
        if claim is None:
            yield
            return
        # Before the caller has the list, which is theirs to change.
        versions = [message.row_version for message in batch.messages]
        try:
            yield
        except BaseException:
            self._claims.give_back(claim)
            raise
        self._claims.complete(Completion(claim, read=RowsRead.of(versions)))

    def _claim_messages(self, batch: Received, max_messages: int) -> Claim | None:
        """Claim until there is something to hand over or the queue is empty; poison leaves the claim."""
        while (claim := self._claims.claim(batch.queue, "receive_only", max_messages)) is not None:
            batch.expired += claim.expired
            batch.forwarded += claim.forwarded
            try:
                batch.messages[:], poison, _ = self._claims.messages(claim)
                left = self._claims.dead_letter(claim, [row for row, _ in poison]) if poison else claim
            except BaseException:
                self._claims.give_back(claim)
                raise
            batch.poisoned += len(poison)
            if left is not None:
                return left
        return None
