"""Workers that receive in an open transaction, in the modes that promise exactly-once effects."""

from __future__ import annotations

from queue_pipeline.transport import TransactionMode
from tools.chaos.desk import Desk, Doomed, Passing

MODES = (TransactionMode.SENDS_ATOMIC_WITH_RECEIVE, TransactionMode.TRANSACTION_SCOPE)
_SIZES = (1, 10, 50, 200, 500)
_FAILING_SHARE = 0.08


class Receiver:
    """Receives a batch, sends what comes of it, and sometimes fails."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def step(self) -> bool:
        """Receive one batch; a failure rolls everything back."""
        desk, stage, mode = self.desk, self.desk.stage(), self.desk.chance.choice(MODES)
        in_scope = mode is TransactionMode.TRANSACTION_SCOPE
        most = desk.chance.choice(_SIZES[:3] if desk.arena.is_nginn else _SIZES)
        try:
            with desk.transport.receive(desk.arena.stages[stage], most, mode) as batch:
                handled = desk.handle(batch.messages, stage, effect=in_scope)
                if handled.doomed and desk.arena.is_nginn:
                    # A receiver of such a queue fails a batch as a whole; each of its messages counts the attempt.
                    raise Doomed(f"{len(handled.doomed)} of {len(batch)} messages")
                batch.send([*handled.operations, *desk.failures(handled.doomed, stage)])
                if in_scope:
                    desk.write_effects(handled.effects)(batch.connection)
                if len(batch) and desk.happens(_FAILING_SHARE):
                    raise Passing("the handler failed")
                taken = len(batch) + batch.poisoned
        except (Passing, Doomed):
            desk.note("failed and rolled back")
            return True
        if taken:
            desk.note(f"received in {mode.value}", taken)
        return bool(taken)
