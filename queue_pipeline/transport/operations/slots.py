"""Slots: a queue has one per batch in work, counted in the database for all machines.

A slot is a row in `QueueSlots` with a lease. One owner at a time counts the rows and takes slots, see
`operations.slot_gate`.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.transport.addresses.queues import SLOTS_TABLE, AddressBook, QueueTable
from queue_pipeline.transport.claims.claim import check_lease, check_owner
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction, repeated_if_added
from queue_pipeline.transport.texts import storable

LONGEST_REASON = 400
ASK_AGAIN_SECONDS = 1.0
"""How long an owner that got fewer slots than it wanted waits before it asks again."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SlotHolder:
    """An owner at work on a queue: how many slots it has, and for how much longer unless it renews them."""

    queue: str
    owner: str
    slots: int
    lease_seconds: float
    since_seconds: float
    """How long ago it took the first of these slots."""
    ending: str | None = None
    """Why it takes no further batch; None while it does."""
    process: str = ""
    """Its process, see `process_identity`; empty if it has not said."""

    @property
    def may_take_more(self) -> str:
        """Whether it takes further messages, in words for a person."""
        return "yes" if self.ending is None else f"no: {self.ending}"


class Slots:
    """Take, renew, release and list."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def take(
        self, queue: QueueTable, owner: str, wanted: int, most: int, lease_seconds: float, process: str = ""
    ) -> int:
        """Occupy slots until the owner has `wanted`, or all owners together have `most`; returns how many it has.

        Slots that it had are renewed. `process` names the process that must live for as long as the slots are held.
        """
        check_owner(queue.canonical, owner)
        check_lease(queue.canonical, lease_seconds)
        address, lease = queue.canonical, round(lease_seconds * 1000)

        # Two may be the first ever on this queue, on a server without range locks.
        @repeated_if_added()
        def occupy(transaction: Transaction) -> int:
            transaction.execute(self._statement("slot_gate"), queue=address)
            transaction.execute(self._statement("slot_expire"), queue=address)
            occupied = dict(map(tuple, transaction.rows(self._statement("slot_occupied"), queue=address)))
            had = sum(1 for holder in occupied.values() if holder == owner)
            if had:
                renewal = {"queue": address, "owner": owner, "lease": lease, "process": process}
                transaction.execute(self._statement("slot_renew"), **renewal)
            # Those above `most` count too: they were taken when more were allowed, and are at work.
            more = max(0, min(wanted - had, most - len(occupied)))
            free = (slot for slot in itertools.count(1) if slot not in occupied)
            for slot in itertools.islice(free, more):
                values = {"queue": address, "slot": slot, "owner": owner, "lease": lease, "process": process}
                transaction.execute(self._statement("slot_take"), **values)
            return had + more

        return self._database.run(occupy)

    def renew(self, queue: QueueTable, owner: str, lease_seconds: float, process: str = "") -> int:
        """Hold an owner's slots for longer; returns how many it still has."""
        check_lease(queue.canonical, lease_seconds)
        lease = round(lease_seconds * 1000)
        return self._count("slot_renew", lease=lease, queue=queue.canonical, owner=owner, process=process)

    def end(self, queue: QueueTable, owner: str, reason: str) -> None:
        """Note that an owner takes no further batch, by its own decision or another's. The first reason stays."""
        self._count("slot_end", queue=queue.canonical, owner=owner, reason=storable(reason, LONGEST_REASON))

    def release(self, queue: QueueTable, owner: str, keep: int = 0) -> None:
        """Give back an owner's slots, all but `keep`."""
        self._count("slot_release", queue=queue.canonical, owner=owner, keep=keep)

    def release_owner(self, owner: str) -> int:
        """Give back every slot that an owner still has, in all queues, after its run ended; returns how many."""
        return self._count("slot_release_owner", owner=owner)

    def held(self, queue: QueueTable) -> dict[str, int]:
        """How many slots of a queue each owner has."""
        return {holder.owner: holder.slots for holder in self.list(queue)}

    def list(self, queue: QueueTable | None = None, *, expired: bool = False) -> list[SlotHolder]:
        """Every owner at work on a queue, or on all; with `expired` also those whose lease is over."""
        address = queue.canonical if queue else ""
        command = self._statement("slot_list")
        rows = self._database.rows(command, queue=address, expired=int(expired))
        return [
            SlotHolder(address, owner, slots, lease / 1000, max(0.0, since / 1000), ending, process)
            for address, owner, slots, lease, since, ending, process in rows
        ]

    def at_work_on(self, addresses: Collection[str]) -> Sequence[SlotHolder]:
        """Every owner at work on one of these queues, for an account of what was done already: none if it fails."""
        try:
            return [holder for holder in self.list() if holder.queue in addresses]
        except QueuePipelineError as error:
            logger.warning("which holders are at work is not known: %s", error)
            return []

    def _count(self, name: str, **values: object) -> int:
        command = self._statement(name)
        return self._database.count(command, **values)

    def _statement(self, name: str) -> Command:
        return self._database.dialect.statement(f"operations.{name}", slots=self._book.own(SLOTS_TABLE))


class RunSlots:
    """The slots of one owner on one queue, as its process knows them; safe to use from several threads."""

    def __init__(
        self, holders: Slots, queue: QueueTable, owner: str, most: int, lease_seconds: float, process: str = ""
    ) -> None:
        self._slots = holders
        self._queue = queue
        self._owner = owner
        self._most = most
        self._lease = lease_seconds
        self._process = process
        self._held = 0
        self._until = 0.0
        self._ask_at = 0.0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """How many it may rely on: none once the lease is over, because others may have them by then."""
        return self._held if time.monotonic() < self._until else 0

    def take(self, wanted: int) -> int:
        """Have `wanted` slots, or all that are free; returns how many it has. A refusal is not questioned at once."""
        with self._lock:
            held, now = self.held, time.monotonic()
            if held >= wanted or (held and now < self._ask_at):
                return held
            self._note(self._take(wanted), now)
            self._ask_at = now + ASK_AGAIN_SECONDS if self._held < wanted else 0.0
            return self._held

    def keep(self, slots: int) -> None:
        """Give back all but `slots`."""
        with self._lock:
            if self._held > slots:
                self._give_back(slots)

    def release(self) -> None:
        """Give back all, also those of which it never heard whether it got them: the database may have gone away."""
        with self._lock:
            self._give_back(0)

    def end(self, reason: str) -> None:
        """Note for others that no further batch is taken in these slots, and why."""
        with self._lock:
            if not self._held:
                return
            try:
                self._slots.end(self._queue, self._owner, reason)
            except QueuePipelineError as error:
                logger.warning("it could not be noted on the slots of %s that they end: %s", self._queue, error)

    def ending(self) -> str | None:
        """Why no further batch is to be taken, as this owner or another process noted; None if neither did."""
        found = (one.ending for one in self._slots.list(self._queue) if one.owner == self._owner)
        return next(found, None)

    def renew(self) -> None:
        """Hold them for longer. Those that were lost meanwhile are taken anew, unless others have them by now."""
        with self._lock:
            if not self._held:
                return
            now, before = time.monotonic(), self._held
            held = self._slots.renew(self._queue, self._owner, self._lease, self._process)
            self._note(held if held == before else self._take(before), now)
            if self._held < before:
                logger.warning(
                    "%d of %d slots of %s were lost: their lease ran out", before - self._held, before, self._queue
                )

    def refusal(self) -> str:
        """Why there was no slot, in words for a person."""
        owners = ", ".join(f"{owner} ({slots})" for owner, slots in self._slots.held(self._queue).items())
        which = "the only slot" if self._most == 1 else f"all {self._most} slots"
        return f"{which} of {self._queue} {'is' if self._most == 1 else 'are'} taken by {owners or 'others'}"

    def _take(self, wanted: int) -> int:
        return self._slots.take(self._queue, self._owner, wanted, self._most, self._lease, self._process)

    def _give_back(self, keep: int) -> None:
        self._held = keep
        try:
            self._slots.release(self._queue, self._owner, keep)
        except QueuePipelineError as error:
            logger.warning("slots of %s could not be given back and wait for their lease: %s", self._queue, error)

    def _note(self, held: int, asked_at: float) -> None:
        # Counted from before the question, so that the lease is never believed to last longer than it does.
        self._held, self._until = held, asked_at + self._lease
