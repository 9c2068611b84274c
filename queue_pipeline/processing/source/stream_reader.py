"""A queue as a stream of Spark's: a micro-batch is a claim, and the offset that Spark keeps is the claim's name.

A queue has no offsets to go back to, for a message is gone once it was received. A claim can be gone back to: it keeps
its messages until it is ended, and Spark writes its name into the checkpoint before a micro-batch begins.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from queue_pipeline.errors import ClaimLostError
from queue_pipeline.processing.batch.worker_transport import ExecutorSettings
from queue_pipeline.processing.run.heartbeat import Heartbeat
from queue_pipeline.processing.source.columns import check_columns
from queue_pipeline.processing.source.completion import complete_staged
from queue_pipeline.processing.source.reader import claim_parts, read_claim_part
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import DEFAULT_LEASE_SECONDS, LONGEST_LEASE_SECONDS, Claim
from queue_pipeline.transport.claims.claim_reader import Part

LONGEST_STREAM_NAME = 100
ALL_MESSAGES = 2**31 - 1
NUMBER, CLAIM = "number", "claim"

logger = logging.getLogger(__name__)


class StreamOptions(BaseModel):
    """The options of a stream."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    queue: str = Field(min_length=1)
    stream: str = Field(min_length=1, max_length=LONGEST_STREAM_NAME)
    batch_messages: int = Field(default=10_000, ge=1, le=1_000_000)
    batch_bytes: int = Field(default=64 * 1024 * 1024, ge=1)
    lease_seconds: float = Field(default=DEFAULT_LEASE_SECONDS, ge=5, le=LONGEST_LEASE_SECONDS)


@dataclass
class StreamPart(InputPartition):
    """What one task reads, of which claim."""

    claim: Claim
    part: Part


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Claims a micro-batch when Spark asks how far it may read, and ends the claim when Spark says that it is done.

    The queue sink ends it first, with the results in the same transaction; then there is nothing left to end.
    """

    def __init__(self, settings: ExecutorSettings, options: StreamOptions, owner: str, schema: T.StructType) -> None:
        check_columns(schema)
        self._settings = settings
        self._options = options
        self._owner = owner
        self._schema = schema
        self._held: dict[str, Claim] = {}
        self._last: dict[str, Any] | None = None
        self._left: int | None = None
        self._heartbeat: Heartbeat | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Before the first claim."""
        return {NUMBER: 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """At most this many messages per micro-batch."""
        return ReadMaxRows(self._options.batch_messages)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read as many messages as there are now, and no more."""
        transport = self._transport
        queue = transport.resolve(self._options.queue)
        status = transport.layouts.of(queue).tables.status(queue, ALL_MESSAGES)
        self._left = status.pending + transport.claims.waiting().get(queue.canonical, 0)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Claim the next micro-batch. That Spark asks means that it has written down the end of the last one."""
        if self._last is not None and self._last[NUMBER] == start[NUMBER] + 1:
            return self._last
        self._end(start)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else ALL_MESSAGES
        if self._left is not None:
            most = min(most, self._left)
        claim = self._claim(most) if most else None
        if claim is None:
            return start
        if self._left is not None:
            self._left -= claim.messages
        self._hold(claim)
        self._last = {NUMBER: start[NUMBER] + 1, CLAIM: asdict(claim)}
        return self._last

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The parts of the claim that an offset names; none if it was ended already, or is another's by now."""
        claim = self._claim_of(end) if start != end else None
        if claim is None:
            return []
        return [StreamPart(claim, part) for part in claim_parts(self._transport, claim)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The messages of one part; reading again reads the same."""
        yield read_claim_part(self._settings, partition.claim, partition.part, self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has processed all up to here."""
        self._end(end)

    def stop(self) -> None:
        """Hold nothing any longer. A claim that is not ended waits for the stream to come back, or for its lease."""
        if self._heartbeat is not None:
            self._heartbeat.__exit__(None, None, None)
            self._heartbeat = None

    @property
    def _transport(self) -> QueueTransport:
        return self._settings.open()

    def _claim(self, most: int) -> Claim | None:
        options = self._options
        most_bytes = {} if most == ALL_MESSAGES else {"max_bytes": options.batch_bytes}
        return self._transport.claim(
            options.queue, self._owner, most, lease_seconds=options.lease_seconds, **most_bytes
        )

    def _claim_of(self, offset: dict[str, Any]) -> Claim | None:
        """The claim that an offset names, held by this stream: taken over if an earlier start of it had it."""
        if CLAIM not in offset:
            return None
        named = Claim(**offset[CLAIM])
        if named.claim_id in self._held:
            return self._held[named.claim_id]
        # Its former holder is an earlier start of this stream: Spark runs one at a time on a checkpoint.
        adopted = self._transport.claims.adopt(named, self._owner, self._options.lease_seconds)
        if adopted is None:
            logger.warning(
                "claim %s of %s was completed, or another owner holds it: nothing is read again",
                named.claim_id,
                named.queue,
            )
            return None
        self._hold(adopted)
        return adopted

    def _end(self, offset: dict[str, Any]) -> None:
        """End the claim of a micro-batch that Spark has written down as done."""
        claim = self._claim_of(offset)
        if claim is None:
            return
        try:
            complete_staged(self._transport, claim)
        except ClaimLostError:
            # Expected after the queue sink, which ends the claim itself.
            logger.debug("claim %s of %s was ended by the sink", claim.claim_id, claim.queue)
        self._held.pop(claim.claim_id, None)
        if self._heartbeat is not None:
            self._heartbeat.let_go(claim)

    def _hold(self, claim: Claim) -> None:
        self._held[claim.claim_id] = claim
        if self._heartbeat is None:
            self._heartbeat = Heartbeat(self._transport.claims, self._options.lease_seconds)
            self._heartbeat.__enter__()
        self._heartbeat.hold(claim)
