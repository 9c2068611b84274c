"""The ways that a batch can take to the user's own tables: through the run or by executors, on a server or a file."""

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline_tests.support.databases.backends import Backend
from queue_pipeline_tests.support.processing.processed import process as process_claim

BODY = "n bigint NOT NULL, country string, amount decimal(12,2), day date"


@dataclass
class Routed:
    """A way that a batch can take, on a database with tables of the user's own."""

    route: str
    backend: Backend
    transport: QueueTransport
    spark: Any

    def declare(self, transform, **options):
        given = {
            "name": "orders",
            "input_queue": "orders",
            "output_queues": ["billing"],
            "transform": transform,
            "body_schema": BODY,
            "route": self.route,
            "transaction_mode": "transaction_scope",
            "linger_seconds": 0,
            "peek_delay": 0.1,
        }
        return QueuePipeline(**{**given, **options})

    def process(self, transform, claim=None, **options):
        """One batch; returns its report."""
        pipeline, sessions = self.declare(transform, **options), AttemptSessions(lambda: self.spark)
        transformer, executors = SparkTransformer(pipeline, sessions), Executors(pipeline, self.transport, sessions)
        claim = claim or self.transport.claim("orders", "me", 1_000)
        report = process_claim(BatchProcessor(pipeline, self.transport, transformer, executors), pipeline, claim)
        assert report.backend == pipeline.route
        return report

    def drain(self, transform, **options):
        """A run until the queue is empty; returns the reports of its batches."""
        pipeline, sessions = self.declare(transform, **options), AttemptSessions(lambda: self.spark)
        executors, attempts = Executors(pipeline, self.transport, sessions), []
        recovery = Recovery(pipeline, self.transport, SparkTransformer(pipeline, sessions), executors)
        ended = PipelineRun(
            pipeline,
            self.transport,
            "run 1",
            recovery,
            slots=pipeline.slots,
            on_attempt=attempts.append,
        ).run()
        assert (ended.reason, ended.failure) == ("the queue is empty", None)
        return [report for attempt in attempts for report in attempt.reports]

    def fill(self, *bodies):
        self.transport.send("orders", [new_message(json.dumps(body)) for body in bodies])

    def sent(self, queue="billing"):
        return [json.loads(shown.body) for shown in self.transport.show(queue, 1_000)]

    def reasons(self):
        return sorted(
            (json.loads(shown.body)["n"], shown.headers["NServiceBus.ExceptionInfo.Message"])
            for shown in self.transport.show("error", 1_000)
        )

    def create(self, table, columns):
        """A table; PostgreSQL's types, which SQLite takes as well."""
        name = self.transport.book.own(table).qualified
        self.backend.sql(self.transport, f"CREATE TABLE {name} ({columns})")

    def rows(self, table, columns="*"):
        """What a table holds, in the order of its first columns; SQLite has neither decimals nor dates."""
        name = self.transport.book.own(table).qualified
        found = self.backend.sql(self.transport, f"SELECT {columns} FROM {name} ORDER BY 1, 2")
        return [tuple(row) for row in found]

    def totals(self):
        return [
            (country, day if isinstance(day, date) else date.fromisoformat(day), orders, Decimal(str(revenue)))
            for country, day, orders, revenue in self.rows("totals")
        ]
