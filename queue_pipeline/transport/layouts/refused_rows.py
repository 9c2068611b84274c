"""Work on a queue whose messages for other queues may be refused there: it is done again without them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from queue_pipeline.errors import DatabaseUnavailableError, QueuePipelineError, TransientDatabaseError
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction

T = TypeVar("T")
Leaving: TypeAlias = list[Any]
"""The keys of messages that a transaction sends elsewhere, noted before it does."""


def is_refusal(error: QueuePipelineError) -> bool:
    """Whether a table refused a message; an outage, a lock or a deadlock is none, and passes by itself."""
    return not isinstance(error, DatabaseUnavailableError | TransientDatabaseError)


def past_refusals(
    database: Database, work: Callable[[Transaction, Leaving], T], send_on: Callable[[Sequence[Any]], int]
) -> tuple[T, int]:
    """Do `work` in a transaction; returns its result, and how many messages had to leave first.

    The work notes the keys of messages that it forwards. If a destination refuses one, all is undone, `send_on`
    forwards those messages in transactions of their own, and the work is repeated. A savepoint would not help: a failed
    statement ends the transaction on SQL Server, and a late constraint refuses the commit.
    """
    left = 0
    while True:
        leaving: Leaving = []
        try:
            return database.run(functools.partial(_call, work, leaving)), left
        except QueuePipelineError as error:
            if not leaving or not is_refusal(error):
                raise
        left += send_on(leaving)


def _call(work: Callable[[Transaction, Leaving], T], leaving: Leaving, transaction: Transaction) -> T:
    leaving.clear()
    return work(transaction, leaving)
