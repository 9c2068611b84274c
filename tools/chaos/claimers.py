"""Workers that claim batches and then do everything that a holder of a claim can do, in time or too late."""

from __future__ import annotations

import time
from collections.abc import Callable

from queue_pipeline.errors import ClaimLostError
from queue_pipeline.transport import Claim, QueueTable
from queue_pipeline.transport.claims.claim import ranges
from tools.chaos.desk import UNEXPECTED, Desk

SHORT_LEASES = (0.15, 0.3, 0.6)
LONG_LEASE = 4.0
_SIZES = (1, 7, 40, 150, 500)


class Claimer:
    """Completes, splits, separates, adopts, renews, releases, gives back, forgets, and completes late."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._acts: dict[Callable[[Claim, int, float], None], int] = {
            self._complete: 40,
            self._late: 12,
            self._split: 10,
            self._separate: 6,
            self._hand_over: 8,
            self._renew: 6,
            self._release: 6,
            self._give_back: 6,
            self._forget: 4,
            self._poison_first: 4,
        }

    def step(self) -> bool:
        """Take one batch, or a claim of another worker, and do something with it."""
        desk, stage = self.desk, self.desk.stage()
        if desk.happens(0.04):
            self._steal()
        if desk.happens(0.01):
            desk.note("abandoned claims given back", desk.transport.claims.give_back_abandoned(self._table(stage)))
        lease = LONG_LEASE if desk.is_draining or desk.happens(0.3) else desk.chance.choice(SHORT_LEASES)
        most_bytes = 20_000 if desk.happens(0.1) else 1 << 30
        claim = desk.transport.claim(
            desk.arena.stages[stage], desk.owner, desk.chance.choice(_SIZES), most_bytes, lease_seconds=lease
        )
        if claim is None:
            return False
        acts = list(self._acts)
        act = self._complete if desk.is_draining else desk.chance.choices(acts, list(self._acts.values()))[0]
        try:
            act(claim, stage, lease)
        except ClaimLostError:
            desk.note("lost its claim")
            # Of an NGinn queue others may have taken some of its messages only.
            self._try_release(claim)
        return True

    def complete(self, claim: Claim, stage: int, action: str) -> None:
        """Process what the claim holds, and end it with the results."""
        desk = self.desk
        messages, poison, read = desk.transport.claims.messages(claim)
        handled = desk.handle(messages, stage, effect=True)
        desk.complete(claim, stage, handled, handled.operations, poison, read)
        desk.note(action, len(messages) + len(poison))

    def _complete(self, claim: Claim, stage: int, lease: float) -> None:
        self.complete(claim, stage, "completed")

    def _late(self, claim: Claim, stage: int, lease: float) -> None:
        if lease >= LONG_LEASE:
            lease = SHORT_LEASES[0]
            self.desk.transport.claims.renew(claim, lease)
        time.sleep(1.3 * lease)
        self.complete(claim, stage, "completed late")

    def _split(self, claim: Claim, stage: int, lease: float) -> None:
        if claim.messages < 2:
            return self._complete(claim, stage, lease)
        head, tail = self.desk.transport.claims.split(claim, self.desk.chance.randrange(1, claim.messages))
        self.desk.note("split", claim.messages)
        if self.desk.happens(0.5):
            self.complete(tail, stage, "completed")
            self._try_release(head)
        else:
            self.complete(head, stage, "completed")
            if not self.desk.happens(0.3):
                self.complete(tail, stage, "completed")

    def _separate(self, claim: Claim, stage: int, lease: float) -> None:
        messages, _, _ = self.desk.transport.claims.messages(claim)
        versions = [message.row_version for message in messages]
        if len(versions) < 3:
            return self._complete(claim, stage, lease)
        chosen = self.desk.chance.sample(versions, self.desk.chance.randrange(1, len(versions)))
        rest, apart = self.desk.transport.claims.separate(claim, ranges(chosen, versions))
        self.desk.note("separated", len(chosen))
        self.complete(apart, stage, "completed")
        self.complete(rest, stage, "completed")

    def _hand_over(self, claim: Claim, stage: int, lease: float) -> None:
        """A successor adopts the claim; the former holder goes on and must get nothing done."""
        # Also under the same name, where the attempt alone tells the two apart.
        owner = self.desk.owner if self.desk.happens(0.5) else f"{self.desk.owner} again"
        adopted = self.desk.transport.claims.adopt(claim, owner, LONG_LEASE)
        if adopted is None:
            return
        self.desk.note("adopted", adopted.messages)
        try:
            self.complete(claim, stage, f"{UNEXPECTED}: completed by a former holder")
        except ClaimLostError:
            self.desk.note("lost its claim")
        self.complete(adopted, stage, "completed")

    def _steal(self) -> None:
        """Adopt a claim of any worker, as if it were known to be dead."""
        held = [one.held for one in self.desk.transport.claims.list() if one.held]
        if not held:
            return
        claim = self.desk.chance.choice(held)
        adopted = self.desk.transport.claims.adopt(claim, self.desk.owner, LONG_LEASE)
        if adopted is None:
            return
        self.desk.note("adopted", adopted.messages)
        stage = [self._table(stage).canonical for stage in range(len(self.desk.arena.stages))].index(claim.queue)
        try:
            self.complete(adopted, stage, "completed")
        except ClaimLostError:
            self.desk.note("lost its claim")
            self._try_release(adopted)

    def _renew(self, claim: Claim, stage: int, lease: float) -> None:
        self.desk.transport.claims.renew(claim, LONG_LEASE)
        self.desk.note("renewed", claim.messages)
        self.complete(claim, stage, "completed")

    def _release(self, claim: Claim, stage: int, lease: float) -> None:
        if self.desk.happens(0.3):
            self.desk.transport.claims.release_owner(self.desk.owner)
        else:
            self.desk.transport.claims.release(claim, died=self.desk.happens(0.3))
        self.desk.note("released", claim.messages)
        if self.desk.happens(0.3):
            # A released claim cannot be completed, even before another worker takes it.
            self.complete(claim, stage, f"{UNEXPECTED}: completed after a release")

    def _give_back(self, claim: Claim, stage: int, lease: float) -> None:
        self.desk.note("given back", self.desk.transport.claims.give_back(claim))

    def _forget(self, claim: Claim, stage: int, lease: float) -> None:
        self.desk.note("forgotten", claim.messages)

    def _poison_first(self, claim: Claim, stage: int, lease: float) -> None:
        """Move unreadable messages to the error queue before the rest is completed."""
        _, poison, _ = self.desk.transport.claims.messages(claim)
        if poison:
            left = self.desk.transport.claims.dead_letter(claim, [row for row, _ in poison])
            self.desk.note("dead-lettered", len(poison))
            if left is None:
                return
            claim = left
        self.complete(claim, stage, "completed")

    def _try_release(self, claim: Claim) -> None:
        try:
            self.desk.transport.claims.release(claim)
            self.desk.note("released", claim.messages)
        except ClaimLostError:
            self.desk.note("lost its claim")

    def _table(self, stage: int) -> QueueTable:
        return self.desk.transport.resolve(self.desk.arena.stages[stage])
