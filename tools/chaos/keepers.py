"""Workers that keep things going: they move due messages, sweep, and send failed messages back."""

from __future__ import annotations

from queue_pipeline.transport.failed.failed_message import Selection
from tools.chaos.arena import ERRORS
from tools.chaos.desk import Desk
from tools.chaos.plan import number_of_id

_PAGE = 300
_RETRIED_IN_VAIN_SHARE = 0.002


class Mover:
    """Moves due messages, sweeps the outbox and purges, while all others work."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def step(self) -> bool:
        """One pass over the queues."""
        desk, moved = self.desk, 0
        for queue in desk.arena.with_delays:
            batch = desk.chance.choice((1, 20, 1_000))
            moved += desk.transport.move_due(desk.transport.resolve(queue), batch, once=True)
            if desk.happens(0.05):
                desk.transport.purge(queue)
        if desk.happens(0.2):
            desk.note("swept", desk.transport.outbox.sweep())
        desk.note("moved", moved)
        return moved > 0


class Retrier:
    """Sends failed messages back to where they failed: those that can succeed, and a few that fail again."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._after = 0

    def step(self) -> bool:
        """Look at one page of failed messages."""
        returned = self._retry_in_place() if self.desk.arena.is_nginn else self._retry_errors()
        self.desk.note("looks")
        self.desk.note("returned", returned)
        return returned > 0

    def _retry_errors(self) -> int:
        desk, failed = self.desk, self.desk.transport.failed
        page = failed.list(ERRORS, limit=_PAGE, after=self._after)
        self._after = page[-1].row_version if len(page) == _PAGE else 0
        wanted = [one for one in page if one.failed_queue and self._is_wanted(one.message_id)]
        if not wanted:
            return 0
        selection = Selection(ids=tuple(one.id for one in wanted))
        return failed.retry(ERRORS, selection, batch=desk.chance.choice((1, 50, 500))).done

    def _retry_in_place(self) -> int:
        desk, returned = self.desk, 0
        for queue in map(desk.transport.resolve, desk.arena.stages):
            page = desk.transport.nginn.failed(queue, limit=_PAGE)
            wanted = [one.id for one in page if self._is_wanted(one.unique_id)]
            returned += desk.transport.nginn.retry_failed(queue, *wanted) if wanted else 0
        return returned

    def _is_wanted(self, identity: str | None) -> bool:
        known = number_of_id(identity)
        if known is None:
            return False
        stage, number = known
        return self.desk.arena.plan.doomed_at(number) != stage or self.desk.happens(_RETRIED_IN_VAIN_SHARE)
