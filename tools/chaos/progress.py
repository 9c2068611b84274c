"""How much is left to do in an arena."""

from __future__ import annotations

from queue_pipeline.transport import QueueTransport
from tools.chaos.arena import ERRORS, Arena
from tools.chaos.plan import number_of_id

_MOST = 1_000_000


def pending(arena: Arena, transport: QueueTransport) -> int:
    """Messages that wait, are delayed, are in work, or failed and can still succeed."""
    figures = transport.status(*arena.with_delays)
    in_queues = sum(queue.pending + (queue.delayed or 0) + (queue.claimed or 0) for queue in figures)
    return in_queues + _retryable(arena, transport)


def _retryable(arena: Arena, transport: QueueTransport) -> int:
    """Failed messages that the retrier still sends back."""
    if arena.is_nginn:
        queues = [transport.resolve(queue) for queue in arena.stages]
        found = [one.unique_id for queue in queues for one in transport.nginn.failed(queue, limit=_MOST)]
    else:
        found = [one.message_id for one in transport.failed.list(ERRORS, limit=_MOST) if one.failed_queue]
    known = [number_of_id(identity) for identity in found]
    return sum(1 for one in known if one is not None and arena.plan.doomed_at(one[1]) != one[0])
