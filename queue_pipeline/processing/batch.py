"""One batch from claim to completion: read, transform, and everything written in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from queue_pipeline.processing.acknowledgement import acknowledgements
from queue_pipeline.processing.arrow import Array, Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.audit import audit_copies
from queue_pipeline.processing.claimed_batch import ClaimedBatch, Unreadable, read_batch
from queue_pipeline.processing.envelopes import Sending
from queue_pipeline.processing.error_message import Failure
from queue_pipeline.processing.failed_copies import FailedCopies, FailedMessage, failed_copies, same_reason
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.recoverability import DelayedRetry
from queue_pipeline.processing.transforming import Transformed, Transformer
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.database import Transaction
from queue_pipeline.transport.messages import TransactionMode
from queue_pipeline.transport.ready import ReadyMessages
from queue_pipeline.transport.transport import QueueTransport


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What became of a batch."""

    claim_id: str
    attempt: int
    messages: int
    bytes: int
    sent: int
    failed: Sequence[FailedMessage]
    expired: int
    table_rows: int
    read_seconds: float
    transform_seconds: float
    complete_seconds: float
    ids: Array
    latencies: Array
    """Seconds from the sender's clock to completion, null where the sender wrote no time; beside `ids`."""
    delayed: int = 0
    """Messages that failed and are tried again later."""
    due_seconds: float | None = None
    """When the first of the delayed messages that it wrote is due, counted from then."""


class BatchProcessor:
    """Processes claims of one pipeline; safe to use from several threads."""

    def __init__(self, pipeline: QueuePipeline, transport: QueueTransport, transformer: Transformer) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._transformer = transformer

    def process(self, claim: Claim) -> BatchReport:
        """Read, transform and complete; on an error nothing was written, and the claim is still held.

        In the mode `unreliable` the messages are gone once they were read, and in `receive_only` the sends are
        written before the claim is completed: that is what those modes mean.
        """
        batch = self.read(claim)
        if self._pipeline.transaction_mode is TransactionMode.UNRELIABLE:
            self.take(batch)
        return self.work(batch)

    def read(self, claim: Claim) -> ClaimedBatch:
        """The messages of a claim."""
        return read_batch(self._transport.claim_reader, claim)

    def take(self, batch: ClaimedBatch) -> None:
        """End a claim before its messages are processed: from here on nothing but this process knows them."""
        self._complete(batch, ())

    def work(self, batch: ClaimedBatch) -> BatchReport:
        """Transform a batch and write everything that comes of it."""
        mode, started, clock = self._pipeline.transaction_mode, datetime.now(UTC), _Clock()
        results = self._transformer.transform(batch, self._sending())
        transformed = clock.lap()
        reasons = {one.id: Failure(one.error_type, one.error) for one in results.failures}
        refused = pc.is_in(batch.messages["id"], pa.array(list(reasons), pa.string()))
        errors = self._copies(batch.messages.filter(refused), reasons)
        done = batch.messages.filter(pc.invert(refused))
        ready = [*results.ready, *errors.ready, *self._confirmations(done, started)]
        due = _due_seconds(ready)
        if mode in (TransactionMode.UNRELIABLE, TransactionMode.RECEIVE_ONLY):
            self._transport.dispatch_ready(ready)
            ready = []
        if mode is not TransactionMode.UNRELIABLE:
            self._complete(batch, ready, self._own_tables(results))
        return _report(batch, errors, clock, due, results, transformed)

    def give_up(
        self,
        batch: ClaimedBatch,
        failure: Failure,
        retry: Callable[[Mapping[str, str]], DelayedRetry | None] = lambda _: None,
    ) -> BatchReport:
        """End a batch whose messages all failed: each is tried again later, or goes to the error queue."""
        clock = _Clock()
        copies = self._copies(batch.messages, same_reason(batch.messages, failure), retry)
        if self._pipeline.transaction_mode is TransactionMode.UNRELIABLE:
            self._transport.dispatch_ready(copies.ready)
        else:
            self._complete(batch, copies.ready)
        return _report(batch, copies, clock, _due_seconds(copies.ready))

    def _copies(
        self,
        messages: Table,
        reasons: Mapping[str, Failure],
        retry: Callable[[Mapping[str, str]], DelayedRetry | None] = lambda _: None,
    ) -> FailedCopies:
        address = self._transport.resolve(self._pipeline.input_queue).canonical
        return failed_copies(self._pipeline, address, messages, reasons, datetime.now(UTC), retry)

    def _complete(
        self,
        batch: ClaimedBatch,
        ready: Sequence[ReadyMessages],
        work: Callable[[Transaction], None] | None = None,
    ) -> None:
        dead_letters = [row.row_version for row in batch.unreadable]
        self._transport.claims.complete(batch.claim, (), work, ready=ready, dead_letters=dead_letters)

    def _sending(self) -> Sending:
        pipeline, resolve = self._pipeline, self._transport.resolve
        outputs = pipeline.output_queues
        return Sending(
            pipeline=pipeline.name,
            endpoint=pipeline.endpoint_name,
            reply_to=resolve(pipeline.input_queue).canonical,
            canonical={output.queue: resolve(output.queue).canonical for output in outputs},
            message_types={output.queue: output.message_type for output in outputs if output.message_type},
            content_types={output.queue: output.content_type for output in outputs},
            times_to_live={output.queue: output.time_to_live for output in outputs if output.time_to_live},
        )

    def _confirmations(self, messages: Table, started: datetime) -> list[ReadyMessages]:
        """What is sent about messages that were processed: to the audit queue, and to whoever retried them."""
        pipeline, now = self._pipeline, datetime.now(UTC)
        confirmed = acknowledgements(messages, now, pipeline.endpoint_name)
        if pipeline.audit_queue is None:
            return confirmed
        audited = audit_copies(
            pipeline.audit_queue, messages, started, now, pipeline.endpoint_name, pipeline.audit_time_to_live
        )
        return [*confirmed, audited]

    def _own_tables(self, results: Transformed) -> Callable[[Transaction], None] | None:
        if not results.tables:
            return None

        def write(transaction: Transaction) -> None:
            for rows in results.tables:
                self._transport.user_tables.write(transaction, rows)

        return write


def _report(
    batch: ClaimedBatch,
    copies: FailedCopies,
    clock: _Clock,
    due_seconds: float | None,
    results: Transformed | None = None,
    transformed: float = 0.0,
) -> BatchReport:
    claim, messages = batch.claim, batch.messages
    now = pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC"))
    elapsed = pc.cast(pc.subtract(now, messages["enqueued"]), pa.int64())
    return BatchReport(
        claim_id=claim.claim_id,
        attempt=claim.attempt,
        messages=messages.num_rows + len(batch.unreadable),
        bytes=claim.bytes,
        sent=results.sent if results else 0,
        failed=[*copies.failed, *map(_unreadable, batch.unreadable)],
        expired=claim.expired,
        table_rows=sum(len(rows.rows) for rows in results.tables) if results else 0,
        read_seconds=batch.read_seconds,
        transform_seconds=transformed,
        complete_seconds=clock.lap(),
        ids=messages["id"],
        latencies=pc.divide(pc.cast(elapsed, pa.float64()), 1e6),
        delayed=copies.delayed,
        due_seconds=due_seconds,
    )


def _due_seconds(ready: Sequence[ReadyMessages]) -> float | None:
    soonest = min((min(messages.milliseconds) for messages in ready if messages.delayed and messages.ids), default=None)
    return None if soonest is None else soonest / 1000


def _unreadable(row: Unreadable) -> FailedMessage:
    return FailedMessage(row.id, None, "MessageHeadersUnreadable", row.problem)


class _Clock:
    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        return elapsed
