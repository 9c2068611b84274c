"""Results of a stream for queues: the end of a micro-batch sends them and ends its claim, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from queue_pipeline.errors import ClaimLostError, ConfigurationError
from queue_pipeline.processing.batch.staging import TaskReport, abandon, stage_partition
from queue_pipeline.processing.batch.worker_transport import ExecutorSettings
from queue_pipeline.processing.results.outcome_writer import plain_sending, written_messages
from queue_pipeline.processing.source.completion import complete_staged
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import Claim, lost


@dataclass(frozen=True)
class StreamReport(TaskReport):
    """What a task of a stream staged, and for which claim; None if it staged nothing."""

    claim: Claim | None = None


class StreamOutcomeWriter(DataSourceStreamArrowWriter):
    """Writes rows of (origin, outcome) of a stream that reads a queue.

    Which claim a micro-batch is, is asked of the database: a stream holds one at a time, under a name that no other
    start of it has. A process that is left of an earlier start finds none.
    """

    def __init__(self, settings: ExecutorSettings, stream: str, owner: str) -> None:
        self._settings = settings
        self._stream = stream
        self._owner = owner

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StreamReport:  # type: ignore[override]
        """Stage a partition, all or none.

        Only results prove whose claim it is: that of another query of this name must not end without them. A claim
        without results is ended by the reader, when Spark asks for the next one.
        """
        batches = [batch for batch in iterator if batch.num_rows]
        if not batches:
            return StreamReport()
        claim = self._claim(self._settings.open())
        if claim is None:
            raise ClaimLostError(
                f"stream {self._stream}: there are results, and no claim to complete with them: it was lost to another "
                "receiver, or the messages do not come from this stream; nothing was sent"
            )
        sending = plain_sending(claim, self._stream)
        report = stage_partition(
            self._settings, claim, self._stream, batches, partial(written_messages, sending=sending)
        )
        return StreamReport(**vars(report), claim=claim)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Send what successful attempts staged and end the claim; nothing where it was ended before a restart."""
        reports = [report for report in messages if report is not None]
        claims = {report.claim for report in reports if report.claim is not None}
        if not claims:
            return
        if len(claims) > 1:
            raise lost(next(iter(claims)))
        complete_staged(self._settings.open(), claims.pop(), reports)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        """Drop what was staged; after a commit that raised, nothing that counts is undone."""
        for claim in {report.claim for report in messages if report is not None and report.claim is not None}:
            abandon(self._settings.open(), claim)

    def _claim(self, transport: QueueTransport) -> Claim | None:
        held = transport.claims.held_by(self._owner)
        if len(held) > 1:
            raise ConfigurationError(
                f"stream {self._stream}: {len(held)} claims are in work under this name at once; give every query that "
                "reads a queue a name of its own, and write the messages of one queue in one query"
            )
        return held[0] if held else None
