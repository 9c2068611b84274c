"""The backend of a cluster: executors read a claim, transform it and stage its results; this process never has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.backend import Processed
from queue_pipeline.processing.batch.claimed_batch import SCHEMA, ClaimedBatch, Unreadable, read_rows
from queue_pipeline.processing.batch.local import LocalBackend
from queue_pipeline.processing.batch.messages_frame import ORIGIN, PAYLOAD, messages_frame
from queue_pipeline.processing.batch.part_report import PartReport, read_part, row_ranges, row_versions
from queue_pipeline.processing.batch.sent_times import SentTimes
from queue_pipeline.processing.batch.staging import Manifest, Messages, abandon, new_job
from queue_pipeline.processing.batch.tasks import REPORT, REPORTS, TABLES, Reading, Staging
from queue_pipeline.processing.batch.worker_transport import executor_settings
from queue_pipeline.processing.body.parse import body_parser
from queue_pipeline.processing.declaration.contract import returned_by
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.acknowledgement import acknowledgements
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
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns
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


class ExecutorBackend:
    """Computes claims without reading them: only messages that failed, or that ask for an answer, come here."""

    def __init__(
        self, pipeline: QueuePipeline, transport: QueueTransport, executors: Executors, local: LocalBackend
    ) -> None:
        """What is not about a whole claim, `local` does."""
        self._pipeline = pipeline
        self._transport = transport
        self._executors = executors
        self._local = local

    def read(self, claim: Claim, *, with_sample: bool) -> ClaimedBatch:
        """Nothing, or the first message as a sample, if it can be read."""
        reader, rows = self._transport.claim_reader, SCHEMA.empty_table()
        if with_sample:
            rows = read_rows(reader, claim, [claim.first_row_version])
        return ClaimedBatch(claim, rows, (), is_whole=False)

    def came_back(self, batch: ClaimedBatch) -> list[tuple[int, int]]:
        """Messages that failed before and came back after a delay, as ranges of row versions; none if all did."""
        marked = self._transport.claims.marked(batch.claim, wire.quote(wire.RETRIES))
        return [] if len(marked) == batch.claim.messages else row_ranges(marked)

    def process(self, batch: ClaimedBatch, sending: Sending) -> Processed:
        """Have a claim transformed and its results staged."""
        claim, started = batch.claim, datetime.now(UTC)
        results = self._executors.stage(claim, sending)
        failed = [one.row_version for one in results.failures]
        return Processed(
            claim=claim,
            backend="executors",
            read=results.read,
            failed=read_rows(self._transport.claim_reader, claim, failed),
            times=SentTimes.of_parts(results.parts),
            failures=results.failures,
            unreadable=results.unreadable,
            confirmations=self._acknowledged(claim, failed),
            staged=[*results.groups, *self._confirmed(claim, failed, started)],
            sent=sum(group.messages for group in results.groups),
            tables=results.tables,
            without_outcome=results.without_outcome,
        )

    def probe(self, sample: ClaimedBatch | None, sending: Callable[[], Sending]) -> Exception | None:
        """The error of the transform on some messages, or on none; None if it works."""
        return self._local.probe(sample, sending)

    def answers(self) -> bool:
        """Whether Spark is there."""
        return self._local.answers()

    def _confirmed(self, claim: Claim, failed: Sequence[int], started: datetime) -> list[StagedGroup]:
        """The copies for the audit queue: one of every message, so that executors make them."""
        pipeline = self._pipeline
        if pipeline.audit_queue is None:
            return []
        confirming = Confirming(
            audit_queue=pipeline.audit_queue,
            audit_time_to_live=pipeline.audit_time_to_live,
            endpoint=pipeline.endpoint_name,
            started=started,
            ended=datetime.now(UTC),
            refused=list(failed),
        )
        return self._executors.confirm(claim, confirming)

    def _acknowledged(self, claim: Claim, failed: Sequence[int]) -> list[MessageColumns]:
        """What ServiceControl waits for; where there are audit copies, these are the answer."""
        pipeline, transport = self._pipeline, self._transport
        if pipeline.audit_queue is not None:
            return []
        retried = set(transport.claims.marked(claim, wire.RETRY_UNIQUE_MESSAGE_ID)) - set(failed)
        if not retried:
            return []
        rows = read_rows(transport.claim_reader, claim, sorted(retried))
        return acknowledgements(rows, datetime.now(UTC), pipeline.endpoint_name)


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
