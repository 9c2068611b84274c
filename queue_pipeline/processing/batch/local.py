"""The local backend: a batch passes through this process, as Arrow columns to Spark and back."""

from __future__ import annotations

from datetime import UTC, datetime

from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.backend import Processed, confirming_of
from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch, read_batch
from queue_pipeline.processing.batch.sent_times import SentTimes
from queue_pipeline.processing.batch.transformer import Transformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.confirmations import confirmations
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.processing.results.sorting import refused_among
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import Claim, ranges
from queue_pipeline.transport.messages import headers as wire


class LocalBackend:
    """Reads claims whole, and has a transformer compute them."""

    def __init__(self, pipeline: QueuePipeline, transport: QueueTransport, transformer: Transformer) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._transformer = transformer

    def read(self, claim: Claim, *, with_sample: bool = False) -> ClaimedBatch:
        """All messages of a claim, samples among them."""
        return read_batch(self._transport.claim_reader, claim)

    def came_back(self, batch: ClaimedBatch) -> list[tuple[int, int]]:
        """Messages that failed before and came back after a delay, as ranges of row versions; none if all did."""
        marked = pc.match_substring(batch.messages["headers"], wire.quote(wire.RETRIES))
        if not pc.any(marked).as_py() or pc.all(marked).as_py():
            return []
        versions = batch.messages["row_version"]
        return ranges(versions.filter(marked).to_pylist(), versions.to_pylist())

    def process(self, batch: ClaimedBatch, sending: Sending) -> Processed:
        """Transform a batch; its results stay in this process."""
        started = datetime.now(UTC)
        results = self._transformer.transform(batch, sending)
        refused = refused_among(self._pipeline.name, batch.messages, results.failures)
        done = batch.messages.filter(pc.invert(refused))
        return Processed(
            claim=batch.claim,
            backend="local",
            read=batch.read,
            failed=batch.messages.filter(refused),
            times=SentTimes.of_messages(batch.messages),
            failures=results.failures,
            unreadable=batch.unreadable,
            results=results.ready,
            confirmations=confirmations(done, confirming_of(self._pipeline, started)),
            sent=results.sent,
            tables=results.tables,
            without_outcome=results.without_outcome,
            read_seconds=batch.read_seconds,
        )
