"""Claims on queues of the NServiceBus SQL transport: messages move from the queue into `<queue>.Claimed`."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import replace

from queue_pipeline.transport.addresses.queues import ClaimTables, QueueTable
from queue_pipeline.transport.claims.claim import Claim, differs
from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import Bounds
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.nservicebus.forwarding import Forwarder
from queue_pipeline.transport.layouts.refused_rows import Leaving
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import ReceivedMessage, from_row


class NServiceBusClaimRows:
    """What claims do to the rows of a queue; each method is a step inside a transaction of `Claims`."""

    def __init__(self, database: Database, store: ClaimTable, forwarder: Forwarder) -> None:
        self._database = database
        self._store = store
        self._forwarder = forwarder
        self.marked = store.marked

    def take(
        self, transaction: Transaction, tables: ClaimTables, owner: str, bounds: Bounds, lease: int, leaving: Leaving
    ) -> Claim | None:
        """Take from the head of the queue until there is something to work on or the queue is empty."""
        shapes, claimed = self._database.shapes, tables.claimed
        take = shapes.statement(
            transaction, "nservicebus/claim_messages.take", tables.queue, "deleted", claimed=claimed
        )
        claim = Claim(str(uuid.uuid4()), tables.queue.canonical, owner, 1, 0, 0, 0)
        while not claim.messages:
            taken = self._database.dialect.take_claim(transaction, take, tables, claim.claim_id, bounds)
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
        self._store.open(transaction, claim, lease)
        return claim

    def regain(self, transaction: Transaction, tables: ClaimTables, claim: Claim, lease: int) -> Claim | None:
        """All of it: no other reader of the queue sees the messages of a claim."""
        return claim

    def hold(self, transaction: Transaction, tables: ClaimTables, claim: Claim, lease: int) -> None:
        """Nothing: the claim's own lease is all that holds its messages."""

    def finish(self, transaction: Transaction, tables: ClaimTables, done: Completion) -> None:
        """Delete the messages: as many as were read, unreadable ones among them, which go to the error queue."""
        deleted = self._move_unreadable(transaction, tables, done.claim, done.unreadable)
        deleted += transaction.count(self._store.statement(tables, "drop"), claim_id=done.claim.claim_id)
        if done.read is not None and deleted != done.read.messages:
            raise differs(done.claim, done.read, f"{deleted:,} messages")

    def dead_letter(
        self, transaction: Transaction, tables: ClaimTables, claim: Claim, row_versions: Sequence[int]
    ) -> None:
        """Move messages to the error queue byte for byte."""
        self._move_unreadable(transaction, tables, claim, row_versions)

    def give_back(self, transaction: Transaction, tables: ClaimTables, claim: Claim) -> int:
        """Move messages back into the queue; they keep their place, except on SQL Server."""
        shapes, claimed = self._database.shapes, tables.claimed
        command = shapes.statement(transaction, "nservicebus/claim_messages.return", tables.queue, claimed=claimed)
        transaction.execute(command, claim_id=claim.claim_id)
        return transaction.count(self._store.statement(tables, "drop"), claim_id=claim.claim_id)

    def send_on(self, queue: QueueTable, row_versions: Sequence[int]) -> int:
        """Send on what a mover left here for another queue; a refused message goes to the error queue."""
        return self._forwarder.send_on(queue, row_versions, self._forwarder.from_queue(queue))

    def _move_unreadable(
        self, transaction: Transaction, tables: ClaimTables, claim: Claim, row_versions: Sequence[int]
    ) -> int:
        drop, moved = self._store.statement(tables, "drop_one"), 0
        for row_version in row_versions:
            self._forwarder.dead_letter_claimed(transaction, tables, claim, row_version)
            moved += transaction.count(drop, claim_id=claim.claim_id, row_version=row_version)
        return moved

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
