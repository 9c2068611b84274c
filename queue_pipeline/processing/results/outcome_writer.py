"""Stages the results of a partition, with the same envelopes as the local backend makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceArrowWriter

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.batch.messages_frame import ORIGIN, ORIGIN_FIELDS, SEAL
from queue_pipeline.processing.batch.part_report import row_ranges
from queue_pipeline.processing.batch.staging import TaskReport, abandon, stage_partition
from queue_pipeline.processing.batch.worker_transport import ExecutorSettings
from queue_pipeline.processing.declaration.outcomes import OUTCOME
from queue_pipeline.processing.results.envelopes import Sending, envelopes
from queue_pipeline.processing.results.sorting import (
    ROW_VERSION,
    broken_seal,
    check_sends,
    sort_outcomes,
    strangers,
    unpacked,
    with_origin,
)
from queue_pipeline.processing.source.completion import complete_staged
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.messages.message_columns import MessageColumns


class OutcomeWriter(DataSourceArrowWriter):
    """Writes rows of (origin, outcome) in the executors; `commit`, beside the driver, completes their claim."""

    def __init__(self, settings: ExecutorSettings, claim: Claim, job: str) -> None:
        self._settings = settings
        self._claim = claim
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:  # type: ignore[override]
        """Stage a partition, all or none."""
        messages = partial(written_messages, sending=plain_sending(self._claim))
        return stage_partition(self._settings, self._claim, self._job, iterator, messages)

    def commit(self, messages: Sequence[Any]) -> None:
        """Send what successful attempts staged and end the claim."""
        complete_staged(self._settings.open(), self._claim, [report for report in messages if report is not None])

    def abort(self, messages: Sequence[Any]) -> None:
        """Drop what was staged."""
        abandon(self._settings.open(), self._claim)


def outcome_messages(rows: Table, sending: Sending) -> tuple[list[MessageColumns], TaskReport]:
    """The messages and the report of a partition of `origin` and a column per outcome."""
    rows = with_origin(rows)
    numbers = rows[ROW_VERSION]
    if numbers.null_count:
        raise strangers(sending.pipeline, f"id {rows['id'].filter(numbers.is_null())[0].as_py()}")
    outcomes = sort_outcomes(rows, sending.typed)
    check_sends(sending.pipeline, sending.outputs, sending.events, outcomes.sends)
    versions = np.unique(numbers.to_numpy())
    empty = np.setdiff1d(versions, outcomes.row_versions, assume_unique=True)
    report = TaskReport((), outcomes.failures, outcomes.tables, row_ranges(versions), row_ranges(empty))
    return envelopes(outcomes.sends, sending), report


def written_messages(rows: Table, sending: Sending) -> tuple[list[MessageColumns], TaskReport]:
    """The same for a partition of (origin, outcome), as a program writes it."""
    broken = broken_seal(rows)
    if broken is not None:
        raise strangers(sending.pipeline, f"id {broken}")
    return outcome_messages(unpacked(rows), sending)


def plain_sending(claim: Claim, name: str | None = None) -> Sending:
    """The settings of results without a pipeline."""
    return Sending(pipeline=name or claim.queue, endpoint=claim.queue, reply_to=claim.queue, canonical={})


def check_outcome_schema(schema: T.StructType) -> None:
    """Refuse a frame that is not what `messages.select("origin", each(...))` makes."""
    names = schema.fieldNames()
    if sorted(names) == sorted((ORIGIN, OUTCOME)):
        origin: Any = schema[ORIGIN].dataType
        if isinstance(origin, T.StructType) and tuple(origin.fieldNames()) == (*ORIGIN_FIELDS, SEAL):
            return
    raise ConfigurationError(
        f"the columns {', '.join(names)} cannot be sent: write a frame of {ORIGIN} and {OUTCOME}, as made by "
        f'messages.select("{ORIGIN}", each(send(...)))'
    )
