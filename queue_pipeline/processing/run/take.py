"""How a run takes batches: how large the next one is, in which slots, and from where after failures."""

from __future__ import annotations

import logging
from collections.abc import Callable

from queue_pipeline.errors import ClaimLostError
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.heartbeat import Heartbeat
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.claims import Claims
from queue_pipeline.transport.operations.slots import RunSlots
from queue_pipeline.transport.transport import QueueTransport

logger = logging.getLogger(__name__)

SMALLEST_SHARE = 5_000
"""A batch costs Spark a tenth of a second before its first message; smaller shares would cost more than they save."""


def take_batch(pipeline: QueuePipeline, transport: QueueTransport, owner: str, slots: int) -> Claim | None:
    """Claim the next batch of a pipeline, if there is one; the last backlog is shared among the slots of the run."""
    messages = pipeline.batch_messages
    if slots > 1 and messages > SMALLEST_SHARE:
        messages = share(transport.peek(pipeline.input_queue, slots * messages), slots, messages)
    return transport.claim(pipeline.input_queue, owner, messages, pipeline.batch_bytes, pipeline.lease_seconds)


def share(waiting: int, slots: int, most: int) -> int:
    """How many of the waiting messages the next batch takes, so that all slots end at about the same time."""
    return min(most, max(SMALLEST_SHARE, -(-waiting // slots)))


def slots_of(pipeline: QueuePipeline, transport: QueueTransport, owner: str, process: str) -> RunSlots:
    """The slots of a run among all that a pipeline's queue has: none yet."""
    queue = transport.resolve(pipeline.input_queue)
    return RunSlots(transport.slots, queue, owner, pipeline.max_concurrency, pipeline.lease_seconds, process)


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
