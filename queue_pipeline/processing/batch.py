"""One batch from claim to completion: read, transform, and everything written in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from queue_pipeline.processing.arrow import Array
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.audit import audit_copies
from queue_pipeline.processing.claimed_batch import ClaimedBatch, Unreadable, read_batch
from queue_pipeline.processing.envelopes import Failed, Sending
from queue_pipeline.processing.error_message import Failure, error_message
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.transforming import Transformed, transform_batch
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.database import Transaction
from queue_pipeline.transport.messages import Operation, TransactionMode
from queue_pipeline.transport.ready import ReadyMessages
from queue_pipeline.transport.transport import QueueTransport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class FailedMessage:
    """A message that went to the error queue."""

    id: str
    message_type: str | None
    error_type: str
    error: str


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


class BatchProcessor:
    """Processes claims of one pipeline; safe to use from several threads."""

    def __init__(self, pipeline: QueuePipeline, transport: QueueTransport, spark: Callable[[], SparkSession]) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._spark = spark

    def process(self, claim: Claim) -> BatchReport:
        """Read, transform and complete; on an error nothing was written, and the claim is still held.

        In the mode `unreliable` the messages are gone once they were read, and in `receive_only` the sends are
        written before the claim is completed: that is what those modes mean.
        """
        mode = self._pipeline.transaction_mode
        started, clock = datetime.now(UTC), _Clock()
        batch = read_batch(self._transport.claim_reader, claim)
        read = clock.lap()
        dead_letters = [row.row_version for row in batch.unreadable]
        if mode is TransactionMode.UNRELIABLE:
            self._transport.claims.complete(claim, dead_letters=dead_letters)
        results = transform_batch(self._spark(), self._pipeline, batch, self._sending())
        transformed = clock.lap()
        ready = [*results.ready, *self._audit(batch, results, started)]
        errors = self._errors(batch, results.failures)
        if mode in (TransactionMode.UNRELIABLE, TransactionMode.RECEIVE_ONLY):
            self._transport.dispatch_ready(ready)
            self._transport.dispatch(errors)
        if mode is TransactionMode.RECEIVE_ONLY:
            self._transport.claims.complete(claim, dead_letters=dead_letters)
        elif mode is not TransactionMode.UNRELIABLE:
            self._transport.claims.complete(
                claim, errors, self._own_tables(results), ready=ready, dead_letters=dead_letters
            )
        return self._report(batch, results, read, transformed, clock.lap())

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

    def _audit(self, batch: ClaimedBatch, results: Transformed, started: datetime) -> list[ReadyMessages]:
        queue = self._pipeline.audit_queue
        if queue is None:
            return []
        failed = pa.array([failure.id for failure in results.failures], pa.string())
        messages = batch.messages.filter(pc.invert(pc.is_in(batch.messages["id"], failed)))
        return [audit_copies(queue, messages, started, datetime.now(UTC), self._pipeline.endpoint_name)]

    def _errors(self, batch: ClaimedBatch, failures: Sequence[Failed]) -> list[Operation]:
        """The copies for the error queue of the messages that were refused."""
        if not failures:
            return []
        reasons = {failure.id: failure for failure in failures}
        chosen = batch.messages.filter(pc.is_in(batch.messages["id"], pa.array(list(reasons), pa.string())))
        queue = self._transport.resolve(self._pipeline.input_queue).canonical
        operations = []
        for row in chosen.select(["id", "message_id", "headers", "body"]).to_pylist():
            reason = reasons[row["id"]]
            headers = wire.decode(row["headers"])
            headers.setdefault(wire.MESSAGE_ID, row["message_id"])
            headers.pop(wire.FORWARD_DESTINATION, None)
            failure = Failure(reason.error_type, reason.error)
            message = error_message(headers, row["body"], failure, queue, self._pipeline.endpoint_name)
            operations.append(Operation(self._pipeline.error_queue, message))
        return operations

    def _own_tables(self, results: Transformed) -> Callable[[Transaction], None] | None:
        if not results.tables:
            return None

        def write(transaction: Transaction) -> None:
            for rows in results.tables:
                self._transport.user_tables.write(transaction, rows)

        return write

    def _report(
        self, batch: ClaimedBatch, results: Transformed, read: float, transformed: float, completed: float
    ) -> BatchReport:
        claim, messages = batch.claim, batch.messages
        now = pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC"))
        elapsed = pc.cast(pc.subtract(now, messages["enqueued"]), pa.int64())
        return BatchReport(
            claim_id=claim.claim_id,
            attempt=claim.attempt,
            messages=claim.messages,
            bytes=claim.bytes,
            sent=results.sent,
            failed=_failed_messages(batch, results.failures),
            expired=claim.expired,
            table_rows=sum(len(rows.rows) for rows in results.tables),
            read_seconds=read,
            transform_seconds=transformed,
            complete_seconds=completed,
            ids=messages["id"],
            latencies=pc.divide(pc.cast(elapsed, pa.float64()), 1e6),
        )


def _failed_messages(batch: ClaimedBatch, failures: Sequence[Failed]) -> list[FailedMessage]:
    types: dict[str, str | None] = {}
    if failures:
        chosen = batch.messages.filter(
            pc.is_in(batch.messages["id"], pa.array([failure.id for failure in failures], pa.string()))
        )
        types = dict(zip(chosen["id"].to_pylist(), chosen["message_type"].to_pylist(), strict=True))
    refused = [FailedMessage(one.id, types.get(one.id), one.error_type, one.error) for one in failures]
    return [*refused, *map(_unreadable, batch.unreadable)]


def _unreadable(row: Unreadable) -> FailedMessage:
    return FailedMessage(row.id, None, "MessageHeadersUnreadable", row.problem)


class _Clock:
    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        return elapsed
