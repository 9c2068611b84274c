"""A claim through Spark without passing through this process: executors read it, transform it and stage the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.body.ddl import parse_ddl
from queue_pipeline.processing.claimed_batch import Unreadable
from queue_pipeline.processing.contract import returned_by
from queue_pipeline.processing.envelopes import Failed, Sending
from queue_pipeline.processing.executors.attempts import Messages, abandon, new_job
from queue_pipeline.processing.executors.claim_source_reader import PART_BYTES, PART_MESSAGES, claim_parts
from queue_pipeline.processing.executors.columns import COLUMNS, PROBLEM
from queue_pipeline.processing.executors.confirmations import Confirming, confirmations
from queue_pipeline.processing.executors.manifest import Manifest
from queue_pipeline.processing.executors.narrow import is_narrow, physical_plan
from queue_pipeline.processing.executors.outcome_writer import outcome_messages
from queue_pipeline.processing.executors.own_errors import own_errors
from queue_pipeline.processing.executors.settings import executor_settings
from queue_pipeline.processing.executors.tasks import REPORT, Reading, Staging
from queue_pipeline.processing.messages_frame import FITS, ORIGIN, described, seen_by_transforms
from queue_pipeline.processing.outcomes import OUTCOME
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.transforming import collected, misfits, table_rows
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.outbox import Pile
from queue_pipeline.transport.user_tables import TableRows

QUANTILES = 200
"""Into so many steps the times of sending are summed up: enough for percentiles, and the same size for any batch."""
_ACCURACY = 2_000


@dataclass(frozen=True, slots=True)
class Times:
    """When the messages of a batch were sent: quantiles in microseconds, how many told it, and the oldest."""

    quantiles: Sequence[int] = ()
    known: int = 0
    oldest_id: str | None = None
    oldest: int | None = None


@dataclass(frozen=True, slots=True)
class StagedResults:
    """What executors made of a claim: results in the outbox, what failed, and rows for the user's own tables."""

    piles: Sequence[Pile]
    failures: Sequence[Failed]
    unreadable: Sequence[Unreadable]
    tables: Sequence[TableRows]
    times: Times


class Executors:
    """Has Spark's executors work on claims of one pipeline; safe to use from several threads."""

    def __init__(self, pipeline: QueuePipeline, transport: QueueTransport, spark: Callable[[], SparkSession]) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._spark = spark

    def master(self) -> str | None:
        """The master of the cluster that Spark runs on, as its configuration names it."""
        return self._spark().conf.get("spark.master", None)

    def stage(self, claim: Claim, sending: Sending) -> StagedResults:
        """Transform a claim and stage the results; on an error nothing stays behind that would ever be sent."""
        with own_errors():
            return self._stage(claim, sending)

    def confirm(self, claim: Claim, confirming: Confirming) -> list[Pile]:
        """Stage the copies of a claim's messages for the audit queue, and acknowledgements."""
        columns = (
            "row_version BIGINT NOT NULL, headers STRING NOT NULL, body BINARY NOT NULL, message_id STRING NOT NULL"
        )
        with own_errors():
            claimed = self._claimed(claim, f"{columns}, {PROBLEM} STRING").where(F.col(PROBLEM).isNull())
            return self._write(claim, claimed.drop(PROBLEM), partial(confirmations, confirming=confirming)).piles

    def _stage(self, claim: Claim, sending: Sending) -> StagedResults:
        batch = _Batch(self._claimed(claim, COLUMNS), claim, self._pipeline)
        returned = returned_by(self._pipeline, batch.readable)
        with ThreadPoolExecutor(max(1, len(returned.tables))) as others:
            tables = [others.submit(table_rows, table) for table in returned.tables]
            manifest = Manifest(piles=[], failures=[])
            if returned.outcomes is not None:
                outcomes = returned.outcomes
                plan = physical_plan(outcomes)
                if not is_narrow(plan):
                    # What belongs to one message must come to one task: numbers of results, and failures of half of it.
                    outcomes = outcomes.repartition(_parts(claim), F.col(f"{ORIGIN}.row_version"))
                outputs = [output.queue for output in self._pipeline.output_queues]
                messages = partial(outcome_messages, claim=claim, sending=sending, outputs=outputs)
                manifest = self._write(claim, outcomes.select(ORIGIN, OUTCOME), messages)
                batch.was_written(plan)
            rows = tuple(table.result() for table in tables)
        unreadable, refused = batch.refused()
        return StagedResults(manifest.piles, [*refused, *manifest.failures], unreadable, rows, batch.times)

    def _claimed(self, claim: Claim, columns: str) -> DataFrame:
        """A claim as a frame, a part a task."""
        settings, parts = executor_settings(self._transport), claim_parts(self._transport, claim)
        numbers: Any = self._spark().range(0, len(parts), 1, len(parts))
        schema = parse_ddl(columns)
        frame: DataFrame = numbers.mapInArrow(Reading(settings, claim, parts, schema), schema)
        return frame

    def _write(self, claim: Claim, frame: DataFrame, messages: Messages) -> Manifest:
        """Have a frame staged, and gather what its tasks reported."""
        staging: Any = Staging(executor_settings(self._transport), claim, new_job(), messages)
        try:
            reports = collected(frame.mapInArrow(staging, f"{REPORT} STRING"))[REPORT].to_pylist()
        except Exception:
            abandon(self._transport, claim)
            raise
        return Manifest.of(Manifest.model_validate_json(report) for report in reports)


class _Batch:
    """The frame of a claim, and what is counted on the way while it is transformed."""

    def __init__(self, claimed: DataFrame, claim: Claim, pipeline: QueuePipeline) -> None:
        self._claim = claim
        self._schema = pipeline.body_schema
        self._frame = described(claimed, claim.failures + 1, self._schema, PROBLEM)
        self._seen = Observation()
        self._counts: dict[str, Any] = {}
        is_good = F.col(PROBLEM).isNull()
        fits = F.lit(True) if self._schema is None else F.col(FITS)
        sent = F.unix_micros("enqueued")
        # Counting keeps Spark from moving the filter below the parsing, as on the driver.
        observed = self._frame.observe(
            self._seen,
            F.count(F.lit(1)).alias("messages"),
            F.count_if(~is_good).alias("problems"),
            F.count_if(is_good & ~fits).alias("misfits"),
            F.count("enqueued").alias("told"),
            F.percentile_approx(sent, [step / QUANTILES for step in range(QUANTILES + 1)], _ACCURACY).alias("times"),
            F.min(F.when(F.col("enqueued").isNotNull(), F.struct(sent.alias("sent"), "id"))).alias("oldest"),
        )
        self.readable = seen_by_transforms(observed.where(is_good & fits), self._schema)

    def was_written(self, plan: str) -> None:
        """Take the counts, if they were made: a transform may have looked at nothing, and then nobody counted."""
        if "CollectMetrics" in plan:
            self._counts = self._seen.get

    def refused(self) -> tuple[list[Unreadable], list[Failed]]:
        """The messages that the transform did not see; asked of Spark unless each one was seen to be good."""
        counts = self._counts if self._counts.get("messages") == self._claim.messages else {}
        unreadable: list[Unreadable] = []
        if counts.get("problems") != 0:
            bad: Table = self._frame.where(F.col(PROBLEM).isNotNull()).select("row_version", "id", PROBLEM).toArrow()
            unreadable = [Unreadable(**row) for row in bad.to_pylist()]
        if self._schema is None or counts.get("misfits") == 0:
            return unreadable, []
        return unreadable, misfits(self._frame.where(F.col(PROBLEM).isNull()), self._schema)

    @property
    def times(self) -> Times:
        """When its messages were sent."""
        oldest = self._counts.get("oldest")
        return Times(
            self._counts.get("times") or (),
            self._counts.get("told", 0),
            oldest["id"] if oldest else None,
            oldest["sent"] if oldest else None,
        )


def _parts(claim: Claim) -> int:
    return 1 + max(claim.messages // PART_MESSAGES, claim.bytes // PART_BYTES)
