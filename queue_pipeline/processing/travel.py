"""Which way a batch takes: through the driver, or read and staged by Spark's executors."""

from __future__ import annotations

from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.messages import TransactionMode


def travels_by_executors(pipeline: QueuePipeline, claim: Claim, *, can_travel: bool, shares: bool) -> bool:
    """Whether executors take a claim.

    `can_travel`: another process can open the database. `shares`: it has many writers at a time; where there is one, as
    in SQLite, executors would only wait for each other, so that they are used there if the pipeline asks for them.
    """
    if pipeline.travel == "driver" or pipeline.transaction_mode is TransactionMode.UNRELIABLE:
        return False
    if pipeline.travel == "executors":
        return True
    is_large = claim.messages >= pipeline.executor_messages or claim.bytes >= pipeline.executor_bytes
    return is_large and can_travel and shares
