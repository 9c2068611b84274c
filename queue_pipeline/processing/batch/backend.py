"""The backend of a batch: which process reads a claim, computes it and holds the results until they are committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch, Unreadable
from queue_pipeline.processing.batch.sent_times import SentTimes
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.processing.results.sorting import Failed
from queue_pipeline.transport.claims.claim import Claim, RowsRead
from queue_pipeline.transport.claims.outbox import StagedGroup
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline.transport.operations.user_tables import TableRows

BackendName: TypeAlias = Literal["local", "executors"]


@dataclass(frozen=True, slots=True)
class Processed:
    """All that came of a batch; nothing of it is visible before it is committed."""

    claim: Claim
    backend: BackendName
    read: RowsRead
    """The messages that it is made of, failed and unreadable ones among them."""
    failed: Table
    """The messages that failed, for a reason in `failures`."""
    times: SentTimes
    failures: Sequence[Failed] = ()
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

    def probe(self, sample: ClaimedBatch | None, sending: Callable[[], Sending]) -> Exception | None:
        """The error of the transform on some messages, or on none; None if it works. Nothing is written."""

    def answers(self) -> bool:
        """Whether Spark, or whatever it computes with, is there."""
