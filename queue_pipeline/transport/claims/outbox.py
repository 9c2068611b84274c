"""The outbox: results staged by many processes beside a claim, until one transaction completes it.

Only the holder of the claim can stage. The completion moves exactly the groups that were reported, and drops the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from queue_pipeline.errors import StagedLostError
from queue_pipeline.transport.addresses.queues import CLAIMS_TABLE, OUTBOX_TABLE, AddressBook
from queue_pipeline.transport.claims.claim import Claim, lost
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES, Row
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.messages.message import new_row_ids
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline.transport.send import Sender, Shipment, uuid_bytes

STAGED_TYPES = ("bytea", "text", "int4", "bytea", "int8", "text", "bytea")
"""Those of section `outbox.copy`; for ids see `uuid_bytes`."""


@dataclass(frozen=True, slots=True)
class StagedGroup:
    """Messages for one queue that one task staged."""

    task: str
    number: int
    destination: str
    delayed: bool
    messages: int


class Outbox:
    """Stage, deliver, abandon and sweep."""

    def __init__(self, database: Database, book: AddressBook, sender: Sender) -> None:
        self._database = database
        self._book = book
        self._sender = sender

    def stage(self, claim: Claim, task: str, ready: Iterable[MessageColumns]) -> list[StagedGroup]:
        """Stage messages under the name of a task, all or none. Each attempt needs a new name."""
        sets = list(ready)
        shipments = self._sender.prepare_columns(sets)
        if not shipments:
            return []

        def write(transaction: Transaction) -> None:
            for number, shipment in enumerate(shipments):
                self._write(transaction, claim, shipment, task, number)
            self._hold(transaction, claim)

        self._database.run(write)
        filled = (one for one in sets if one.ids)
        return [
            StagedGroup(task, number, str(one.destination), one.delayed, len(one.ids))
            for number, one in enumerate(filled)
        ]

    def _write(self, transaction: Transaction, claim: Claim, shipment: Shipment, task: str, number: int) -> None:
        rows = self._sender.stored_rows(transaction, shipment)
        if not self._database.driver.copies:
            command = self._statement("outbox.stage", claim)
            transaction.insert(command, rows, claim_id=claim.claim_id, task=task, group_number=number)
            return
        first = (uuid_bytes(claim.claim_id), task, number)
        staged = ((*first, uuid_bytes(row.id), row.milliseconds, row.headers, row.body) for row in rows)
        transaction.copy(self._statement("outbox.copy", claim), STAGED_TYPES, staged)

    def report(self, claim: Claim, task: str, number: int, report: bytes) -> None:
        """Keep what a task reports until the claim is completed; repeated reports of one number are the same."""
        row = Row(next(new_row_ids(1)), NEVER_EXPIRES, "{}", report)

        def write(transaction: Transaction) -> None:
            command = self._statement("outbox.stage", claim)
            transaction.insert(command, [row], claim_id=claim.claim_id, task=task, group_number=number)
            self._hold(transaction, claim)

        self._database.run(write)

    def reports(self, claim: Claim, task: str) -> dict[int, bytes]:
        """What was reported under a name, by number."""
        command = self._statement("outbox.reports", claim)
        rows = self._database.rows(command, claim_id=claim.claim_id, task=task)
        return {int(number): bytes(report) for number, report in rows}

    def abandon(self, claim: Claim) -> int:
        """Drop all that was staged for a claim, if the caller still holds it; returns how many rows there were."""
        command = self._statement("outbox.abandon", claim)
        return self._database.count(command, **claim.fence)

    def sweep(self) -> int:
        """Drop what was staged for claims that are no more, as by a task that outlived its claim."""
        command = self._statement("outbox.sweep", None)
        return self._database.count(command)

    def deliver(self, transaction: Transaction, claim: Claim, groups: Sequence[StagedGroup]) -> int:
        """Move groups to their queues, in the transaction that completes their claim; returns how many messages."""
        dialect, delivered = self._database.dialect, 0
        outbox = self._book.own(OUTBOX_TABLE)
        for group in groups:
            table = self._sender.table_of(group.destination, delayed=group.delayed)
            if group.delayed:
                name = f"{table.layout}/queue.deliver_delayed"
                command = dialect.statement(name, queue=table, delayed=table, outbox=outbox)
            else:
                command = self._database.shapes.statement(
                    transaction, f"{table.layout}/queue.deliver", table, outbox=outbox
                )
            moved = transaction.count(command, claim_id=claim.claim_id, task=group.task, group_number=group.number)
            if moved != group.messages:
                raise _missing(claim, f"{group.messages - moved} of {group.messages} messages for {group.destination}")
            delivered += moved
        return delivered

    def clear(self, transaction: Transaction, claim: Claim) -> None:
        """Drop all that was ever staged for a claim, in the transaction that ends it."""
        transaction.execute(self._statement("outbox.clear", claim), claim_id=claim.claim_id)

    def _hold(self, transaction: Transaction, claim: Claim) -> None:
        """Check, as the last step, that the claim is still held, so that it is completed after this transaction."""
        if not transaction.rows(self._statement("claim_table.hold", claim), **claim.fence):
            raise lost(claim)

    def _statement(self, name: str, claim: Claim | None) -> Command:
        names = {"outbox": self._book.own(OUTBOX_TABLE), "claims": self._book.own(CLAIMS_TABLE)}
        command = self._database.dialect.statement(name, **names)
        return replace(command, queue=claim.queue if claim else None)


def _missing(claim: Claim, what: str) -> StagedLostError:
    return StagedLostError(
        f"claim {claim.claim_id} of {claim.queue}: {what} are no longer in the outbox, as after a crash of the "
        "database; nothing was sent, and the claim is processed again"
    )
