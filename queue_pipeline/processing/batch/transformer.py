"""Runs a transform over a batch and collects what it wants sent: Spark's part of the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.claimed_batch import SCHEMA, ClaimedBatch, parse_bodies, without_control
from queue_pipeline.processing.batch.messages_frame import ORIGIN, PAYLOAD, messages_frame
from queue_pipeline.processing.body.parse import body_parser
from queue_pipeline.processing.declaration.contract import Returned, returned_by
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.envelopes import Sending, envelopes
from queue_pipeline.processing.results.sorting import (
    NO_OUTCOME,
    ROW_VERSION,
    Sorted,
    check_sends,
    look_up_origin,
    sort_outcomes,
    strangers,
)
from queue_pipeline.processing.results.table_rows import together
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.input import Handover
from queue_pipeline.processing.spark.internals.calls import collected
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline.transport.operations.user_table_sql import TableRows

# A frame needs a row to have columns.
_ANY_MESSAGE = pa.Table.from_pylist(
    [{"id": "", "row_version": 0, "headers": "{}", "body": b"", "message_id": ""}], SCHEMA
)


@dataclass(frozen=True, slots=True)
class Transformed:
    """What is to be written for a batch."""

    ready: Sequence[MessageColumns] = ()
    failures: Mapping[int, Failure] = field(default_factory=dict)
    """Why messages failed, by row version."""
    tables: Sequence[TableRows] = ()
    without_outcome: int = 0
    """How many messages have no result, and are done all the same."""

    @property
    def sent(self) -> int:
        """How many messages there are to send."""
        return sum(len(ready.ids) for ready in self.ready)


class Transformer(Protocol):
    """Computes what is to be written for a batch."""

    def transform(self, batch: ClaimedBatch, sending: Sending) -> Transformed:
        """The results of a batch."""

    def probe(self) -> Exception | None:
        """The error that it raises without messages; None when it works."""

    def answers(self) -> bool:
        """Whether Spark answers."""


class SparkTransformer:
    """Computes with a pipeline's transform on Spark, whose session is asked for when a batch needs it."""

    def __init__(self, pipeline: QueuePipeline, sessions: AttemptSessions) -> None:
        self._pipeline = pipeline
        self._sessions = sessions
        self._handover = Handover()
        self._parser = None if pipeline.body_schema is None else body_parser(pipeline.body_schema)

    def transform(self, batch: ClaimedBatch, sending: Sending) -> Transformed:
        """The results of a batch; raises a TransformError if they cannot be used."""
        messages, refused = parse_bodies(self._parser, batch.messages)
        if messages.num_rows == 0:
            return Transformed(failures=refused)
        with self._sessions.session() as spark, self._handover.frame(spark, messages) as frame:
            returned = returned_by(self._pipeline, self._seen(frame, batch.claim.failures + 1))
            outcomes = self._collect(returned, messages, sending)
        ready = envelopes(outcomes.sends, sending)
        failures, without = {**refused, **outcomes.failures}, _without_outcome(messages, outcomes)
        if self._pipeline.require_outcome:
            failures |= dict.fromkeys(without, NO_OUTCOME)
            without = []
        return Transformed(ready, failures, together(outcomes.tables), len(without))

    def probe(self) -> Exception | None:
        """The error of the transform on a frame without messages, if there is one: no message causes that."""
        try:
            any_message = _ANY_MESSAGE
            if self._parser is not None:
                any_message = any_message.append_column(PAYLOAD, pa.array([None], self._parser.payload_type))
            with self._sessions.session() as spark, self._handover.frame(spark, any_message) as frame:
                nothing = self._seen(frame.where(F.lit(False)), 1)
                returned = returned_by(self._pipeline, nothing)
                if returned.outcomes is not None:
                    collected(returned.outcomes)
        except Exception as error:
            return error
        return None

    def answers(self) -> bool:
        """Whether Spark computes anything."""
        try:
            with self._sessions.session() as spark:
                return spark.range(1).count() == 1
        except Exception:
            return False

    def _seen(self, frame: DataFrame, attempt: int) -> DataFrame:
        return messages_frame(frame, attempt, *(() if self._parser is None else (PAYLOAD,)))

    def _collect(self, returned: Returned, messages: Table, sending: Sending) -> Sorted:
        """One Spark action: only the row version of its message comes back with a result, the rest is looked up."""
        if returned.outcomes is None:
            return Sorted((), {})
        version = F.col(f"{ORIGIN}.{ROW_VERSION}").alias(ROW_VERSION)
        rows = collected(returned.outcomes.select(version, *returned.names))
        related = look_up_origin(rows, messages)
        if related is None:
            origins = collected(returned.outcomes.select(f"{ORIGIN}.id", f"{ORIGIN}.{ROW_VERSION}"))
            unknown = origins.filter(pc.invert(pc.is_in(origins[ROW_VERSION], messages[ROW_VERSION])))
            raise strangers(self._pipeline.name, f"id {unknown['id'][0].as_py() if unknown.num_rows else 'unknown'}")
        outcomes = sort_outcomes(related, sending.typed)
        check_sends(self._pipeline.name, sending.outputs, sending.events, outcomes.sends)
        return outcomes


def _without_outcome(messages: Table, outcomes: Sorted) -> list[int]:
    """The row versions of messages for which nothing came back; control messages need no result."""
    if len(outcomes.row_versions) == messages.num_rows:
        return []
    had = pc.is_in(messages[ROW_VERSION], pa.array(outcomes.row_versions, pa.int64()))
    return list(without_control(messages.filter(pc.invert(had)))[ROW_VERSION].to_pylist())
