"""The backend of a cluster: executors read a claim, transform it and stage its results; this process never has it."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.errors import ClaimLostError
from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.backend import Processed, confirming_of
from queue_pipeline.processing.batch.claimed_batch import SCHEMA, ClaimedBatch, read_rows
from queue_pipeline.processing.batch.messages_frame import ORIGIN, PAYLOAD, messages_frame
from queue_pipeline.processing.batch.part_report import PartReport, read_part, row_ranges, row_versions
from queue_pipeline.processing.batch.sent_times import SentTimes
from queue_pipeline.processing.batch.staging import Messages, TaskReport, abandon, new_job
from queue_pipeline.processing.batch.tasks import REPORT, REPORTS, Reading, Staging
from queue_pipeline.processing.batch.worker_transport import executor_settings
from queue_pipeline.processing.body.parse import body_parser
from queue_pipeline.processing.declaration.contract import returned_by
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.confirmations import Confirming, confirmations
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.processing.results.outcome_writer import outcome_messages
from queue_pipeline.processing.results.sorting import NO_OUTCOME, strangers
from queue_pipeline.processing.results.table_rows import together
from queue_pipeline.processing.source.completion import check_rows
from queue_pipeline.processing.source.reader import PART_BYTES, PART_MESSAGES, claim_parts
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.errors import own_errors
from queue_pipeline.processing.spark.internals.calls import collected, physical_plan, spark_schema
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import Claim, RowsRead
from queue_pipeline.transport.claims.claim_reader import Part
from queue_pipeline.transport.claims.outbox import StagedGroup
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns

_NARROW = frozenset(
    {
        "ArrowEvalPython",
        "BatchEvalPython",
        "BatchScan",
        "CollectMetrics",
        "ColumnarToRow",
        "Filter",
        "Generate",
        "MapInArrow",
        "MapInPandas",
        "Project",
        "PythonMapInArrow",
        "Range",
        "RowToColumnar",
    }
)
"""Operators of Spark that work on one partition at a time and leave rows in theirs."""
_OPERATOR = re.compile(r"^[\s:+\-|]*(?:\*\(\d+\)\s*)?([A-Za-z]+)")
_CONFIRMED = ("row_version", "headers", "body", "message_id")


class Executors:
    """The backend of a cluster: this process reads only messages that failed or need an answer. Thread-safe."""

    def __init__(self, pipeline: QueuePipeline, transport: QueueTransport, sessions: AttemptSessions) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._sessions = sessions
        self._parser = None if pipeline.body_schema is None else body_parser(pipeline.body_schema)

    def master(self) -> str | None:
        """The master of the cluster that Spark runs on, as its configuration names it."""
        return self._sessions.master()

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
        """Transform a claim and stage the results; on an error nothing stays behind that would ever be sent."""
        claim, started = batch.claim, datetime.now(UTC)
        try:
            with own_errors(), self._sessions.session() as spark:
                staged, parts = self._stage(spark, claim, sending)
        except ClaimLostError as error:
            if claim.claim_id in str(error):
                raise
            raise strangers(self._pipeline.name, "its plan reads another batch, whose claim has ended") from error
        failures = {version: why for part in parts for version, why in part.refused.items()} | {**staged.failures}
        without = _without_outcome(parts, staged)
        if self._pipeline.require_outcome:
            failures |= dict.fromkeys(without, NO_OUTCOME)
            without = []
        acknowledged, confirmed = self._confirm(claim, list(failures), started)
        return Processed(
            claim=claim,
            backend="executors",
            read=sum((part.read for part in parts), RowsRead()),
            failed=read_rows(self._transport.claim_reader, claim, list(failures)),
            times=SentTimes.of_parts(parts),
            failures=failures,
            unreadable=[row for part in parts for row in part.unreadable],
            confirmations=acknowledged,
            staged=[*staged.groups, *confirmed],
            sent=sum(group.messages for group in staged.groups),
            tables=together(staged.tables),
            without_outcome=len(without),
        )

    def _stage(self, spark: SparkSession, claim: Claim, sending: Sending) -> tuple[TaskReport, list[PartReport]]:
        """Have a claim transformed and its results staged; returns what was staged, and what was read."""
        parts, job = claim_parts(self._transport, claim), new_job()
        schema = SCHEMA if self._parser is None else SCHEMA.append(pa.field(PAYLOAD, self._parser.payload_type))
        settings = executor_settings(self._transport)
        reading = Reading(settings, claim, parts, spark_schema(schema), self._parser, job)
        further = () if self._parser is None else (PAYLOAD,)
        returned = returned_by(self._pipeline, messages_frame(_claimed(spark, reading), claim.failures + 1, *further))
        staged = TaskReport()
        if returned.outcomes is not None:
            outcomes = returned.outcomes
            if not is_narrow(physical_plan(outcomes)):
                # What belongs to one message must come to one task: numbers of results, and failures of half of it.
                outcomes = outcomes.repartition(_tasks(claim), F.col(f"{ORIGIN}.row_version"))
            staged = self._write(claim, outcomes, partial(outcome_messages, sending=sending))
        reports = self._reports(claim, job, parts)
        check_rows(self._pipeline.name, staged, [part for report in reports for part in report.rows])
        return staged, reports

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

    def _write(self, claim: Claim, frame: DataFrame, messages: Messages) -> TaskReport:
        staging: Any = Staging(executor_settings(self._transport), claim, new_job(), messages)
        try:
            found = collected(frame.mapInArrow(staging, REPORTS))
        except Exception:
            abandon(self._transport, claim)
            raise
        return TaskReport.joined(map(pickle.loads, found[REPORT].to_pylist()))

    def _confirm(
        self, claim: Claim, failed: Sequence[int], started: datetime
    ) -> tuple[list[MessageColumns], Sequence[StagedGroup]]:
        """Confirm messages that did not fail. Executors stage audit copies; acknowledgements alone are made here."""
        transport, confirming = self._transport, confirming_of(self._pipeline, started)
        if confirming.audit_queue is None:
            retried = set(transport.claims.marked(claim, wire.RETRY_UNIQUE_MESSAGE_ID)) - set(failed)
            rows = read_rows(transport.claim_reader, claim, sorted(retried))
            return confirmations(rows, confirming), ()
        schema = pa.schema([SCHEMA.field(name) for name in _CONFIRMED])
        with own_errors(), self._sessions.session() as spark:
            parts = claim_parts(transport, claim)
            reading = Reading(executor_settings(transport), claim, parts, spark_schema(schema))
            messages = partial(_confirmed, confirming=confirming, failed=failed)
            return [], self._write(claim, _claimed(spark, reading), messages).groups


def is_narrow(plan: str) -> bool:
    """Whether all operators of a plan are known to be narrow; one that is not known is not."""
    lines = [line for line in plan.splitlines() if line.strip() and not line.startswith("==")]
    found = [_OPERATOR.match(line) for line in lines]
    return bool(found) and all(one is not None and one[1] in _NARROW for one in found)


def _confirmed(rows: Table, confirming: Confirming, failed: Sequence[int]) -> tuple[list[MessageColumns], TaskReport]:
    refused = pc.is_in(rows["row_version"], pa.array(failed, pa.int64()))
    return confirmations(rows.filter(pc.invert(refused)), confirming), TaskReport()


def _without_outcome(reports: Sequence[PartReport], staged: TaskReport) -> list[int]:
    expected = row_versions(part for report in reports for part in report.expected)
    without = np.setdiff1d(expected, row_versions(staged.rows), assume_unique=True)
    empty = np.intersect1d(row_versions(staged.empty), expected, assume_unique=True)
    found: list[int] = np.union1d(without, empty).tolist()
    return found


def _claimed(spark: SparkSession, reading: Reading) -> DataFrame:
    numbers: Any = spark.range(0, len(reading.parts), 1, len(reading.parts))
    frame: DataFrame = numbers.mapInArrow(reading, reading.schema)
    return frame


def _tasks(claim: Claim) -> int:
    return 1 + max(claim.messages // PART_MESSAGES, claim.bytes // PART_BYTES)
