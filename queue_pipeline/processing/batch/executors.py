"""A claim through Spark without passing through this process: executors read it, transform it and stage the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.claimed_batch import SCHEMA, Unreadable
from queue_pipeline.processing.batch.manifest import Manifest
from queue_pipeline.processing.batch.messages_frame import ORIGIN, PAYLOAD, messages_frame
from queue_pipeline.processing.batch.part_report import PartReport, read_part, row_versions
from queue_pipeline.processing.batch.task_staging import Messages, abandon, new_job
from queue_pipeline.processing.batch.tasks import REPORT, REPORTS, TABLES, Reading, Staging
from queue_pipeline.processing.batch.worker_transport import executor_settings
from queue_pipeline.processing.body.parse import body_parser
from queue_pipeline.processing.declaration.contract import returned_by
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.confirmations import Confirming, confirmations
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.processing.results.outcome_writer import outcome_messages
from queue_pipeline.processing.results.sorting import Failed, no_outcome, strangers
from queue_pipeline.processing.results.table_rows import OutcomeRows, together
from queue_pipeline.processing.source.completion import check_rows
from queue_pipeline.processing.source.reader import PART_BYTES, PART_MESSAGES, claim_parts
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.internals.calls import collected, physical_plan, spark_schema
from queue_pipeline.processing.spark.plan_partitioning import is_narrow
from queue_pipeline.processing.spark.worker_errors import own_errors
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import Claim, RowsRead
from queue_pipeline.transport.claims.claim_reader import Part
from queue_pipeline.transport.claims.outbox import StagedGroup
from queue_pipeline.transport.errors import ClaimLostError
from queue_pipeline.transport.operations.user_tables import TableRows

_CONFIRMED = ("row_version", "headers", "body", "message_id")


@dataclass(frozen=True, slots=True)
class StagedResults:
    """What executors made of a claim: results in the outbox, what failed, and rows for the user's own tables."""

    groups: Sequence[StagedGroup]
    failures: Sequence[Failed]
    tables: Sequence[TableRows]
    parts: Sequence[PartReport]
    without_outcome: int = 0
    """How many messages have no result, and are done all the same."""

    @property
    def read(self) -> RowsRead:
        """Which messages the tasks read."""
        return sum((part.read for part in self.parts), RowsRead())

    @property
    def unreadable(self) -> list[Unreadable]:
        """The rows whose headers cannot be read."""
        return [row for part in self.parts for row in part.unreadable]


class Executors:
    """Has Spark's executors work on claims of one pipeline; safe to use from several threads."""

    def __init__(self, pipeline: QueuePipeline, transport: QueueTransport, sessions: AttemptSessions) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._sessions = sessions
        self._parser = None if pipeline.body_schema is None else body_parser(pipeline.body_schema)

    def master(self) -> str | None:
        """The master of the cluster that Spark runs on, as its configuration names it."""
        return self._sessions.master()

    def stage(self, claim: Claim, sending: Sending) -> StagedResults:
        """Transform a claim and stage the results; on an error nothing stays behind that would ever be sent."""
        try:
            with own_errors(), self._sessions.session() as spark:
                return self._stage(spark, claim, sending)
        except ClaimLostError as error:
            if claim.claim_id in str(error):
                raise
            raise strangers(self._pipeline.name, "its plan reads another batch, whose claim has ended") from error

    def confirm(self, claim: Claim, confirming: Confirming) -> list[StagedGroup]:
        """Stage the copies of a claim's messages for the audit queue, and acknowledgements."""
        schema = pa.schema([SCHEMA.field(name) for name in _CONFIRMED])
        with own_errors(), self._sessions.session() as spark:
            parts = claim_parts(self._transport, claim)
            reading = Reading(executor_settings(self._transport), claim, parts, spark_schema(schema))
            messages = partial(confirmations, confirming=confirming)
            return self._write(claim, _claimed(spark, reading), messages)[0].groups

    def _stage(self, spark: SparkSession, claim: Claim, sending: Sending) -> StagedResults:
        parts, job = claim_parts(self._transport, claim), new_job()
        schema = SCHEMA if self._parser is None else SCHEMA.append(pa.field(PAYLOAD, self._parser.payload_type))
        settings = executor_settings(self._transport)
        reading = Reading(settings, claim, parts, spark_schema(schema), self._parser, job)
        further = () if self._parser is None else (PAYLOAD,)
        returned = returned_by(self._pipeline, messages_frame(_claimed(spark, reading), claim.failures + 1, *further))
        manifest, rows = Manifest(groups=[], failures=[]), list[OutcomeRows]()
        if returned.outcomes is not None:
            outcomes = returned.outcomes
            if not is_narrow(physical_plan(outcomes)):
                # What belongs to one message must come to one task: numbers of results, and failures of half of it.
                outcomes = outcomes.repartition(_tasks(claim), F.col(f"{ORIGIN}.row_version"))
            outputs = [output.queue for output in self._pipeline.output_queues]
            messages = partial(outcome_messages, sending=sending, outputs=outputs)
            manifest, rows = self._write(claim, outcomes, messages)
        reports = self._reports(claim, job, parts)
        check_rows(self._pipeline.name, manifest, [part for report in reports for part in report.rows])
        failures = [failed for report in reports for failed in report.refused] + manifest.failures
        without = _without_outcome(reports, manifest)
        if self._pipeline.require_outcome:
            failures += [no_outcome(row_version) for row_version in without]
            without = []
        return StagedResults(manifest.groups, failures, together(rows), reports, len(without))

    def _reports(self, claim: Claim, job: str, parts: Sequence[Part]) -> list[PartReport]:
        """What was read, by part; one that the transform never asked for is read here."""
        found = self._transport.outbox.reports(claim, job)
        reader = self._transport.claim_reader
        return [
            PartReport.model_validate_json(found[number])
            if number in found
            else read_part(reader.read_part(claim, part), self._parser).report
            for number, part in enumerate(parts)
        ]

    def _write(self, claim: Claim, frame: DataFrame, messages: Messages) -> tuple[Manifest, list[OutcomeRows]]:
        """Have a frame staged, and gather what its tasks reported."""
        staging: Any = Staging(executor_settings(self._transport), claim, new_job(), messages)
        try:
            found = collected(frame.mapInArrow(staging, REPORTS))
        except Exception:
            abandon(self._transport, claim)
            raise
        manifest = Manifest.of(Manifest.model_validate_json(report) for report in found[REPORT].to_pylist())
        return manifest, [OutcomeRows.from_bytes(rows) for task in found[TABLES].to_pylist() for rows in task]


def _without_outcome(reports: Sequence[PartReport], manifest: Manifest) -> list[int]:
    """The messages for which nothing came back."""
    expected = row_versions(part for report in reports for part in report.expected)
    without = np.setdiff1d(expected, row_versions(manifest.rows), assume_unique=True)
    empty = np.intersect1d(row_versions(manifest.empty), expected, assume_unique=True)
    found: list[int] = np.union1d(without, empty).tolist()
    return found


def _claimed(spark: SparkSession, reading: Reading) -> DataFrame:
    """A claim as a frame, a part a task."""
    numbers: Any = spark.range(0, len(reading.parts), 1, len(reading.parts))
    frame: DataFrame = numbers.mapInArrow(reading, reading.schema)
    return frame


def _tasks(claim: Claim) -> int:
    return 1 + max(claim.messages // PART_MESSAGES, claim.bytes // PART_BYTES)
