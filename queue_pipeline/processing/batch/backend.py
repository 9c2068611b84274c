"""The backend of a batch: which process reads a claim, computes it and holds the results until they are committed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeAlias

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch, Unreadable
from queue_pipeline.processing.batch.sent_times import SentTimes
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.confirmations import Confirming
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.transport.claims.claim import Claim, RowsRead
from queue_pipeline.transport.claims.outbox import StagedGroup
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.messages.message import TransactionMode
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline.transport.operations.user_table_sql import TableRows

BackendName: TypeAlias = Literal["local", "executors"]

_LOCAL = re.compile(r"local(\[.*\])?")


@dataclass(frozen=True, slots=True)
class Processed:
    """All that came of a batch; nothing of it is visible before it is committed."""

    claim: Claim
    backend: BackendName
    read: RowsRead
    """The messages that it is made of, failed and unreadable ones among them."""
    failed: Table
    """The messages that failed."""
    times: SentTimes
    failures: Mapping[int, Failure] = field(default_factory=dict)
    """Why they failed, by row version."""
    unreadable: Sequence[Unreadable] = ()
    results: Sequence[MessageColumns] = ()
    """Messages to send that are in this process."""
    confirmations: Sequence[MessageColumns] = ()
    """Copies for the audit queue, and acknowledgements of retries."""
    staged: Sequence[StagedGroup] = ()
    """Messages to send that are in the outbox."""
    sent: int = 0
    """How many results there are, in this process and in the outbox."""
    tables: Sequence[TableRows] = ()
    without_outcome: int = 0
    """How many messages have no result, and are done all the same."""
    read_seconds: float = 0.0


class Backend(Protocol):
    """Computes batches of one pipeline; safe to use from several threads."""

    def read(self, claim: Claim, *, with_sample: bool) -> ClaimedBatch:
        """What this process has to read of a claim: all of it, or nothing, or one message as a sample."""

    def came_back(self, batch: ClaimedBatch) -> list[tuple[int, int]]:
        """Messages that failed before and came back after a delay, as ranges of row versions; none if all did."""

    def process(self, batch: ClaimedBatch, sending: Sending) -> Processed:
        """Compute a batch. Nothing that is left behind by an error is ever sent."""


def is_local(master: str) -> bool:
    """Whether a Spark master runs its tasks in the driver's own process, as that of a local Connect server does."""
    return _LOCAL.fullmatch(master) is not None


def route(
    pipeline: QueuePipeline, master: Callable[[], str | None], *, is_reachable: bool, has_many_writers: bool
) -> BackendName:
    """The backend of a pipeline's batches; `auto` is executors on a cluster, whose master is asked for.

    `is_reachable`: another process can open the database. `has_many_writers`: several processes write to it at a time;
    where only one does, as in SQLite, executors would wait for each other, and are used if the pipeline asks for them.
    """
    if pipeline.route == "local" or pipeline.transaction_mode is TransactionMode.UNRELIABLE:
        return "local"
    if pipeline.route == "executors":
        return "executors"
    if not (is_reachable and has_many_writers):
        return "local"
    # A server that does not name its master is not known to have executors that reach the database.
    named = master()
    return "executors" if named and not is_local(named) else "local"


def confirming_of(pipeline: QueuePipeline, started: datetime) -> Confirming:
    """What the confirmations of a batch that ends now have in common."""
    now = datetime.now(UTC)
    return Confirming(pipeline.endpoint_name, started, now, pipeline.audit_queue, pipeline.audit_time_to_live)
