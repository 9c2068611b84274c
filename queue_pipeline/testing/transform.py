"""Runs a pipeline's transform on messages of a test, with the functions of production, but without a database.

Whether queues and tables exist, and who subscribed to an event, is not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch, prepare
from queue_pipeline.processing.batch.report import HEADERS_UNREADABLE
from queue_pipeline.processing.batch.transformer import SparkTransformer, Transformed
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.envelopes import Publication, sending_of
from queue_pipeline.processing.results.sorting import refused_among
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.session import start_session
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline.testing.given import Given, stored_rows
from queue_pipeline.testing.result import RefusedMessage, SentMessage, TransformResult, plain_body, sent_messages
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.message_table import from_rows
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import check_columns
from queue_pipeline.transport.publish import INTENT

REPLY = "Reply"


def run_transform(
    pipeline: QueuePipeline,
    messages: Iterable[Given],
    *,
    spark: SparkSession | None = None,
    attempt: int = 1,
) -> TransformResult:
    """What a pipeline makes of these messages, as one batch; raises what its transform raises.

    A message is a body or `message(...)`. Without a session, the active one is used, or one is started as for a run.
    """
    batch, headers_unreadable = _batch(pipeline, messages, attempt)
    sending = sending_of(
        pipeline,
        str,
        # One subscriber in place of all: its address is the event's name.
        {
            event.name: Publication(event.enclosed_types, [event.name], event.content_type)
            for event in pipeline.publishes
        },
    )
    sessions = AttemptSessions(lambda: spark or spark_session(), pipeline.batch_seconds)
    results = SparkTransformer(pipeline, sessions).transform(batch, sending)
    return _plain(pipeline, batch, results, headers_unreadable)


def spark_session() -> SparkSession:
    """The active session, else one as a run would use it: of the server that stays warm, unless set otherwise."""
    return SparkSession.getActiveSession() or start_session(spark_config())


def _batch(
    pipeline: QueuePipeline, messages: Iterable[Given], attempt: int
) -> tuple[ClaimedBatch, list[RefusedMessage]]:
    stored = from_rows(stored_rows(messages))
    readable, unreadable = prepare(stored)
    claim = Claim("test", pipeline.input_queue, "test", 1, stored.num_rows, 0, 1, failures=attempt - 1)
    bodies: dict[Any, Any] = dict(zip(stored["row_version"].to_pylist(), stored["body"].to_pylist(), strict=True))
    refused = [
        RefusedMessage(row.id, HEADERS_UNREADABLE, row.problem, plain_body(body), body)
        for row in unreadable
        for body in [bodies[row.row_version]]
    ]
    return ClaimedBatch(claim, pa.Table.from_batches([readable]), unreadable), refused


def _plain(
    pipeline: QueuePipeline, batch: ClaimedBatch, results: Transformed, headers_unreadable: list[RefusedMessage]
) -> TransformResult:
    columns = batch.messages.select(["row_version", "message_id", "body"])
    failed = columns.filter(refused_among(pipeline.name, batch.messages, results.failures)).to_pylist()
    sends: dict[str, list[SentMessage]] = {output.queue: [] for output in pipeline.output_queues}
    publications: dict[str, list[SentMessage]] = {event.name: [] for event in pipeline.publishes}
    replies: list[SentMessage] = []
    for ready in results.ready:
        check_columns(ready, str(ready.destination))
        for sent in sent_messages(ready):
            intent = sent.headers[wire.MESSAGE_INTENT]
            if intent == REPLY:
                replies.append(sent)
            else:
                (publications if intent == INTENT else sends)[sent.destination].append(sent)
    tables: dict[str, list[dict[str, Any]]] = {}
    for group in results.tables:
        rows = (dict(zip(group.columns, row, strict=True)) for row in group.rows)
        tables.setdefault(group.table, []).extend(rows)
    refused = [_refused(row, results.failures[row["row_version"]]) for row in failed]
    return TransformResult(sends, replies, publications, headers_unreadable + refused, tables, results.without_outcome)


def _refused(row: Mapping[str, Any], reason: Failure) -> RefusedMessage:
    return RefusedMessage(row["message_id"], reason.error_type, reason.message, plain_body(row["body"]), row["body"])
