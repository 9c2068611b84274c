"""The search for a message that succeeds, when several have failed: the next ones are taken from elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable

from queue_pipeline.processing.run.heartbeat import Heartbeat
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.claims import Claims
from queue_pipeline.transport.errors import ClaimLostError

logger = logging.getLogger(__name__)


class Search:
    """Picks single messages from all over the queue, instead of the neighbours of those that failed.

    Messages that failed are alone in their claims. So a message of a larger claim has not been tried alone yet.
    """

    def __init__(self, claims: Claims, take: Callable[[], Claim | None]) -> None:
        self._claims = claims
        self._take = take
        self._has_gathered = False

    def end(self) -> None:
        """Something succeeded, or was decided."""
        self._has_gathered = False

    def pick(self, waiting: list[Claim], heartbeat: Heartbeat) -> Claim | None:
        """The newest message of the last claim of several; then new messages, then those alone in their claims."""
        self._gather(waiting, heartbeat)
        while True:
            several = [claim for claim in waiting if claim.messages > 1]
            if not several:
                claim = self._take()
                if claim is None or claim.messages == 1:
                    return claim or (waiting.pop() if waiting else None)
                several = [claim]
                waiting.append(claim)
            if (newest := self._newest(several[-1], waiting, heartbeat)) is not None:
                return newest

    def _newest(self, claim: Claim, waiting: list[Claim], heartbeat: Heartbeat) -> Claim | None:
        waiting.remove(claim)
        try:
            rest, newest = self._claims.split(claim, claim.messages - 1)
        except ClaimLostError as error:
            logger.warning("%s", error)
            heartbeat.let_go(claim)
            return None
        heartbeat.hold(rest)
        waiting.insert(0, rest)
        return newest

    def _gather(self, waiting: list[Claim], heartbeat: Heartbeat) -> None:
        """Once a search: take all that was released, and a batch that is new."""
        while not self._has_gathered:
            claim = self._take()
            self._has_gathered = claim is None or claim.generation == 1
            if claim is not None:
                heartbeat.hold(claim)
                waiting.append(claim)
