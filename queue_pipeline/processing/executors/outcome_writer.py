"""Stages what a transform returned: the same envelopes that the driver makes of a small batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceArrowWriter

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.envelopes import Failed, Sending, envelopes, sort_outcomes
from queue_pipeline.processing.executors.attempts import abandon, stage_partition
from queue_pipeline.processing.executors.completion import complete_staged
from queue_pipeline.processing.executors.manifest import Manifest, TaskReport
from queue_pipeline.processing.executors.settings import ExecutorSettings
from queue_pipeline.processing.messages_frame import ORIGIN, ORIGIN_FIELDS
from queue_pipeline.processing.origins import flat
from queue_pipeline.processing.outcome_checks import (
    check_codes,
    check_events,
    check_lifetimes,
    check_outputs,
    check_strangers,
)
from queue_pipeline.processing.outcomes import OUTCOME
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.ready import ReadyMessages


class OutcomeWriter(DataSourceArrowWriter):
    """Writes rows of (origin, outcome), and completes their claim with them.

    `write` runs in the executors, `commit` and `abort` in a process of their own beside Spark's driver.
    """

    def __init__(self, settings: ExecutorSettings, claim: Claim, job: str) -> None:
        self._settings = settings
        self._claim = claim
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:  # type: ignore[override]
        """Stage a partition, all or none."""
        messages = partial(outcome_messages, claim=self._claim, sending=plain_sending(self._claim), outputs=None)
        return stage_partition(self._settings, self._claim, self._job, iterator, messages)

    def commit(self, messages: Sequence[Any]) -> None:
        """Send what successful attempts staged and end the claim."""
        reports = [report for report in messages if report is not None]
        complete_staged(self._settings.open(), self._claim, Manifest.of(reports))

    def abort(self, messages: Sequence[Any]) -> None:
        """Drop what was staged."""
        abandon(self._settings.open(), self._claim)


def outcome_messages(
    rows: Table, claim: Claim, sending: Sending, outputs: Sequence[str] | None
) -> tuple[Sequence[ReadyMessages], Sequence[Failed]]:
    """The envelopes of a partition, and which messages failed; all results of a message are in it."""
    outcomes = sort_outcomes(flat(rows))
    check_strangers(sending.pipeline, outcomes, claim.first_row_version)
    if outputs is not None:
        check_outputs(sending.pipeline, outputs, outcomes.sends)
    check_events(sending.pipeline, sending.events, outcomes.sends)
    check_lifetimes(sending.pipeline, outcomes.sends)
    check_codes(sending.pipeline, outcomes.sends)
    return envelopes(outcomes.sends, sending), outcomes.failures


def plain_sending(claim: Claim, name: str | None = None) -> Sending:
    """What results have in common that no pipeline declares."""
    return Sending(pipeline=name or claim.queue, endpoint=claim.queue, reply_to=claim.queue, canonical={})


def check_outcome_schema(schema: T.StructType) -> None:
    """Refuse a frame that is not what `messages.select("origin", each(...))` makes."""
    names = schema.fieldNames()
    if sorted(names) == sorted((ORIGIN, OUTCOME)):
        origin: Any = schema[ORIGIN].dataType
        if isinstance(origin, T.StructType) and tuple(origin.fieldNames()) == ORIGIN_FIELDS:
            return
    raise ConfigurationError(
        f"the columns {', '.join(names)} cannot be sent: write a frame of {ORIGIN} and {OUTCOME}, as made by "
        f'messages.select("{ORIGIN}", each(send(...)))'
    )
