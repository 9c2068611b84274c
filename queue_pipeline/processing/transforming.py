"""Runs a transform over a batch and collects what it wants sent: Spark's part of the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.body.schema import BodySchema, parse_body
from queue_pipeline.processing.claimed_batch import SCHEMA, ClaimedBatch
from queue_pipeline.processing.contract import Returned, returned_by
from queue_pipeline.processing.envelopes import Failed, Sending, envelopes, sort_outcomes
from queue_pipeline.processing.messages_frame import FITS, ORIGIN, messages_frame, seen_by_transforms
from queue_pipeline.processing.origins import narrowed, related
from queue_pipeline.processing.outcome_checks import (
    check_codes,
    check_events,
    check_lifetimes,
    check_outputs,
    strangers,
)
from queue_pipeline.processing.outcomes import Append, Merge
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.transport.ready import ReadyMessages
from queue_pipeline.transport.user_tables import TableRows

UNREADABLE_BODY = "MessageBodyUnreadable"
"""The error type of bodies that do not fit the schema; they are never retried."""

# A frame needs a row to have columns.
_ANY_MESSAGE = pa.Table.from_pylist(
    [{"id": "", "row_version": 0, "headers": "{}", "body": b"", "message_id": ""}], SCHEMA
)


@dataclass(frozen=True, slots=True)
class Transformed:
    """What is to be written for a batch."""

    ready: Sequence[ReadyMessages] = ()
    failures: Sequence[Failed] = ()
    tables: Sequence[TableRows] = ()

    @property
    def sent(self) -> int:
        """How many messages there are to send."""
        return sum(len(ready.ids) for ready in self.ready)


class Transformer(Protocol):
    """Computes what is to be written for a batch."""

    def transform(self, batch: ClaimedBatch, sending: Sending) -> Transformed:
        """The results of a batch."""

    def probe(self) -> Exception | None:
        """What it says when it is given no messages; None when it works."""

    def answers(self) -> bool:
        """Whether what it computes with is there."""


class SparkTransformer:
    """Computes with a pipeline's transform on Spark, whose session is asked for when a batch needs it."""

    def __init__(self, pipeline: QueuePipeline, spark: Callable[[], SparkSession]) -> None:
        self._pipeline = pipeline
        self._spark = spark

    def transform(self, batch: ClaimedBatch, sending: Sending) -> Transformed:
        """The results of a batch; raises a TransformError if they cannot be used."""
        if batch.messages.num_rows == 0:
            return Transformed()
        return transform_batch(self._spark(), self._pipeline, batch, sending)

    def probe(self) -> Exception | None:
        """The error of the transform on a frame without messages, if there is one: no message is at fault of that."""
        try:
            with messages_frame(self._spark(), _ANY_MESSAGE, 1, self._pipeline.body_schema) as messages:
                nothing = seen_by_transforms(messages.frame.where(F.lit(False)), self._pipeline.body_schema)
                returned = returned_by(self._pipeline, nothing)
                for part in (returned.outcomes, *(table.rows for table in returned.tables)):
                    if part is not None:
                        part.toArrow()
        except Exception as error:
            return error
        return None

    def answers(self) -> bool:
        """Whether Spark computes anything."""
        try:
            return self._spark().range(1).count() == 1
        except Exception:
            return False


def transform_batch(spark: SparkSession, pipeline: QueuePipeline, batch: ClaimedBatch, sending: Sending) -> Transformed:
    """Call the transform and collect its results; raises a TransformError if they cannot be used."""
    with messages_frame(spark, batch.messages, batch.claim.failures + 1, pipeline.body_schema) as messages:
        bodies = None
        if pipeline.body_schema is not None and not messages.all_fit:
            bodies = _Bodies(messages.frame, pipeline.body_schema, batch.messages.num_rows)
        readable = bodies.readable if bodies else messages.frame
        returned = returned_by(pipeline, readable)
        # Planning takes longer than computing on a small batch, and one thread a query.
        with ThreadPoolExecutor(max(1, len(returned.tables))) as others:
            tables = [others.submit(table_rows, table) for table in returned.tables]
            ready, failures = _collect(pipeline, batch, returned, sending)
            rows = tuple(table.result() for table in tables)
        return Transformed(ready, [*(bodies.refused() if bodies else ()), *failures], rows)


class _Bodies:
    """Separates bodies that fit the schema from those that do not, at the price of one pass over good batches."""

    def __init__(self, frame: DataFrame, schema: BodySchema, messages: int) -> None:
        self._frame = frame
        self._schema = schema
        self._messages = messages
        self._seen = Observation()
        if is_remote():
            # Known here, and otherwise asked of the server, which would analyse the plan for it.
            frame.__dict__.setdefault("isStreaming", False)
        # Counting also keeps Spark from moving the filter below the parsing, where it would parse everything twice.
        observed = frame.observe(
            self._seen,
            F.count(F.lit(1)).alias("messages"),
            F.count_if(~F.col(FITS)).alias("problems"),
        )
        self.readable = seen_by_transforms(observed.where(FITS), schema)

    def refused(self) -> list[Failed]:
        """The messages that the transform did not see. Asked of Spark unless every message was seen to be good:
        a transform may stop reading early, and then nothing is known of the rest.
        """
        # A classic session would wait for ever for the counts of a frame that was never executed.
        if is_remote() and self._seen.get == {"messages": self._messages, "problems": 0}:
            return []
        return misfits(self._frame, self._schema)


def misfits(frame: DataFrame, schema: BodySchema) -> list[Failed]:
    """The messages of a frame whose bodies do not fit the schema, with what is wrong in words."""
    problem = F.coalesce(parse_body(schema, F.col("body")).problem, F.lit("the body does not fit its schema"))
    refused = frame.where(~F.col(FITS)).select("id", "row_version", "body")
    rows = collected(refused.select("id", problem.alias("problem"), "row_version"))
    columns = (rows[name].to_pylist() for name in ("id", "problem", "row_version"))
    return [
        Failed(message_id, UNREADABLE_BODY, told, version) for message_id, told, version in zip(*columns, strict=True)
    ]


def _collect(
    pipeline: QueuePipeline, batch: ClaimedBatch, returned: Returned, sending: Sending
) -> tuple[list[ReadyMessages], list[Failed]]:
    """The results as messages."""
    if returned.outcomes is None:
        return [], []
    rows = related(collected(narrowed(returned.outcomes)), batch.messages)
    if rows is None:
        origins = collected(returned.outcomes.select(f"{ORIGIN}.id", f"{ORIGIN}.row_version"))
        is_known = pc.is_in(origins["row_version"], batch.messages["row_version"])
        raise strangers(pipeline.name, origins["id"].filter(pc.invert(is_known)))
    outcomes = sort_outcomes(rows)
    check_outputs(pipeline.name, [output.queue for output in pipeline.output_queues], outcomes.sends)
    check_events(pipeline.name, sending.events, outcomes.sends)
    check_lifetimes(pipeline.name, outcomes.sends)
    check_codes(pipeline.name, outcomes.sends)
    return envelopes(outcomes.sends, sending), list(outcomes.failures)


def collected(frame: DataFrame) -> Table:
    """The rows of a frame of plain types, as they come: `toArrow` first asks a Connect server for their schema."""
    unasked = getattr(frame, "_to_table", None) if is_remote() else None
    return frame.toArrow() if unasked is None else unasked()[0]


def table_rows(table: Append | Merge) -> TableRows:
    """Rows for a table of the user's own."""
    found = collected(table.rows)
    names = tuple(found.column_names)
    columns = [found.column(name).to_pylist() for name in names]
    rows = list(zip(*columns, strict=True))
    if isinstance(table, Merge):
        return TableRows(table.table, names, rows, tuple(table.key), tuple(table.add))
    return TableRows(table.table, names, rows)
