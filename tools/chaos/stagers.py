"""Workers that stage results beside a claim, as executors do, among zombies that go on after the claim is lost."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress

from queue_pipeline.errors import ClaimLostError, QueuePipelineError
from queue_pipeline.transport import Claim, MessageColumns, Operation
from queue_pipeline.transport.claims.outbox import StagedGroup
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from tools.chaos.claimers import LONG_LEASE, SHORT_LEASES
from tools.chaos.desk import UNEXPECTED, Desk

_SIZES = (5, 60, 300, 600)
_MOST_TASKS = 4


class Stager:
    """Claims, stages in several tasks, some of them twice, and completes by the groups of one attempt each."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def step(self) -> bool:
        """One batch; the claim may be lost at any moment."""
        desk, stage = self.desk, self.desk.stage()
        is_late = desk.happens(0.15)
        lease = desk.chance.choice(SHORT_LEASES) if is_late else LONG_LEASE
        claim = desk.transport.claim(
            desk.arena.stages[stage], desk.owner, desk.chance.choice(_SIZES), lease_seconds=lease
        )
        if claim is None:
            return False
        try:
            self._work(claim, stage, 1.3 * lease if is_late else 0.0)
        except ClaimLostError:
            desk.note("lost its claim")
            with suppress(ClaimLostError):
                desk.transport.claims.release(claim)
        return True

    def _work(self, claim: Claim, stage: int, pause: float) -> None:
        desk = self.desk
        messages, poison, read = desk.transport.claims.messages(claim)
        handled = desk.handle(messages, stage, effect=True)
        parts = _cut(handled.operations, desk.chance.randint(1, _MOST_TASKS))
        groups: list[StagedGroup] = []
        for part in parts:
            if desk.happens(0.2):
                # Another attempt of the same task, whose report is not taken.
                self._stage(claim, stage, part)
                desk.note("staged in vain", len(part))
            groups += self._stage(claim, stage, part)
            desk.note("staged", len(part))
        if desk.happens(0.05):
            desk.note("abandoned", desk.transport.outbox.abandon(claim))
            groups = [group for part in parts for group in self._stage(claim, stage, part)]
        zombie = self._start_zombie(claim, stage, parts) if desk.happens(0.3) else None
        try:
            time.sleep(pause)
            desk.complete(claim, stage, handled, (), poison, read, groups)
            desk.note("completed", read.messages)
        finally:
            if zombie is not None:
                zombie.join()
        if desk.happens(0.2):
            self._stage_after_the_end(claim, stage, parts)

    def _stage(self, claim: Claim, stage: int, part: Sequence[Operation]) -> list[StagedGroup]:
        return self.desk.transport.outbox.stage(claim, f"task {uuid.uuid4()}", [self._ready(stage, part)])

    def _ready(self, stage: int, part: Sequence[Operation]) -> MessageColumns:
        messages = [operation.message for operation in part]
        return MessageColumns(
            self.desk.arena.next_queue(stage),
            False,
            [message.headers[wire.MESSAGE_ID] for message in messages],
            [NEVER_EXPIRES] * len(messages),
            [wire.encode(message.headers) for message in messages],
            [message.body for message in messages],
        )

    def _start_zombie(self, claim: Claim, stage: int, parts: Sequence[Sequence[Operation]]) -> threading.Thread:
        """An executor that goes on staging while the claim is completed, or after it was lost."""

        def go_on() -> None:
            try:
                for part in parts:
                    self._stage(claim, stage, part)
            except QueuePipelineError:
                return

        self.desk.note("zombies")
        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        return thread

    def _stage_after_the_end(self, claim: Claim, stage: int, parts: Sequence[Sequence[Operation]]) -> None:
        try:
            if any(self._stage(claim, stage, part) for part in parts):
                self.desk.note(f"{UNEXPECTED}: staged after the end of the claim")
        except ClaimLostError:
            self.desk.note("refused after the end of the claim")


def _cut(operations: Sequence[Operation], parts: int) -> list[Sequence[Operation]]:
    size = -(-len(operations) // parts)
    return [operations[first : first + size] for first in range(0, len(operations), size)] if operations else []
