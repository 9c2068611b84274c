"""Which way the batches of a run take: through the driver, or read and staged by Spark's executors."""

from __future__ import annotations

import re
from collections.abc import Callable

from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport.messages import TransactionMode

_LOCAL = re.compile(r"local(\[.*\])?")


def is_local(master: str) -> bool:
    """Whether a Spark master runs its tasks in the driver's own process, as that of a local Connect server does."""
    return _LOCAL.fullmatch(master) is not None


def travels_by_executors(
    pipeline: QueuePipeline, master: Callable[[], str | None], *, can_travel: bool, shares: bool
) -> bool:
    """Whether executors take the batches of a pipeline; `auto` leaves them to a cluster, whose master is asked for.

    `can_travel`: another process can open the database. `shares`: it has many writers at a time; where there is one, as
    in SQLite, executors would only wait for each other, so that they are used there if the pipeline asks for them.
    """
    if pipeline.route == "local" or pipeline.transaction_mode is TransactionMode.UNRELIABLE:
        return False
    if pipeline.route == "executors":
        return True
    if not (can_travel and shares):
        return False
    # A server that does not name its master is not known to have executors that reach the database.
    named = master()
    return named is not None and named != "" and not is_local(named)
