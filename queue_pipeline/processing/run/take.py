"""How a run takes batches: how large the next one is, and in which slots of the queue."""

from __future__ import annotations

from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.operations.slots import RunSlots
from queue_pipeline.transport.transport import QueueTransport

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


def slots_of(pipeline: QueuePipeline, transport: QueueTransport, owner: str, process: str = "") -> RunSlots:
    """The slots of a run among all that a pipeline's queue has: none yet."""
    queue = transport.resolve(pipeline.input_queue)
    return RunSlots(transport.slots, queue, owner, pipeline.max_concurrency, pipeline.lease_seconds, process)
