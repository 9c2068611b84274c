"""How much is left to do in an arena."""

from __future__ import annotations

from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.addressing import DELAYED_SUFFIX
from tools.chaos.arena import ERRORS, Arena
from tools.chaos.plan import number_of_id

_MOST = 1_000_000


def pending(arena: Arena, transport: QueueTransport) -> int:
    """Messages that wait, are delayed, are in work, or failed and can still succeed."""
    in_work = sum(status.messages for status in transport.claims.list())
    if arena.is_nginn:
        figures = [transport.nginn.figures(transport.resolve(queue)) for queue in arena.stages]
        waiting = sum(figure.ready + figure.scheduled for figure in figures)
    else:
        waiting = sum(transport.peek(queue, _MOST) for queue in arena.stages)
    delayed = [queue for queue in arena.with_delays if transport.resolve(queue).layout != "nginn"]
    siblings = [transport.book.sibling(transport.resolve(queue), DELAYED_SUFFIX) for queue in delayed]
    return (
        waiting + in_work + sum(_rows(transport, table.qualified) for table in siblings) + _retryable(arena, transport)
    )


def _rows(transport: QueueTransport, qualified: str) -> int:
    with transport.transaction() as connection:
        count: int = connection.exec_driver_sql(f"SELECT count(*) FROM {qualified}").scalar_one()
        return count


def _retryable(arena: Arena, transport: QueueTransport) -> int:
    """Failed messages that the retrier still sends back."""
    if arena.is_nginn:
        queues = [transport.resolve(queue) for queue in arena.stages]
        found = [one.unique_id for queue in queues for one in transport.nginn.failed(queue, limit=_MOST)]
    else:
        found = [one.message_id for one in transport.failed.list(ERRORS, limit=_MOST) if one.failed_queue]
    known = [number_of_id(identity) for identity in found]
    return sum(1 for one in known if one is not None and arena.plan.doomed_at(one[1]) != one[0])
