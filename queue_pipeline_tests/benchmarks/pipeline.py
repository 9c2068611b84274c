"""The pipeline part: orders through the worked example, beside the same rows moved inside the database."""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from queue_pipeline.defs.orders import orders
from queue_pipeline.example import shop
from queue_pipeline.example.orders import good_orders, order_body, order_message
from queue_pipeline.orchestration.spark_resource import SparkResource
from queue_pipeline.processing.drain import Drain
from queue_pipeline.processing.figures import RunFigures
from queue_pipeline.processing.recovery import Recovery
from queue_pipeline.processing.spark_setting import spark_config
from queue_pipeline.processing.transforming import SparkTransformer
from queue_pipeline.transport import Operation, OutgoingMessage, QueueTransport
from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.plan import Plan, say
from queue_pipeline_tests.benchmarks.report import Report, Target, paired
from queue_pipeline_tests.benchmarks.server import outside_transaction, private_postgresql, stated_settings, versions
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch
from queue_pipeline_tests.benchmarks.workload import message_size
from queue_pipeline_tests.support.spark import private_spark

PIPELINE_VS_MOVE = Target(at_least=0.3)
PIPELINE = orders.model_copy(update={"linger_seconds": 0.0})
TABLES = ("orders", "orders.Claimed", "QueueClaims", "billing", "shipping", "error", "order_totals", "copied", "moved")


def run(plan: Plan, report: Report) -> None:
    """Measure on PostgreSQL with a warm Spark of its own."""
    messages = [order_message(order_body(order)) for order in itertools.islice(good_orders(7), plan.rows)]
    report.settings.update({"rows": plan.rows, "rounds": plan.rounds, "batch": PIPELINE.batch_messages})
    size = message_size(messages)
    report.settings.update({"header_bytes": size.header_bytes, "body_bytes": size.body_bytes})
    with (
        tempfile.TemporaryDirectory() as folder,
        private_spark(Path(folder)),
        private_postgresql() as cluster,
        QueueTransport(cluster.url(), endpoint="orders") as transport,
        peers.connect(cluster.url()) as connection,
    ):
        report.versions.update({**versions(transport, connection), "pyspark": metadata.version("pyspark")})
        report.settings["postgresql"] = stated_settings(connection)
        connection.commit()
        shop.install(transport)
        transport.install(plain_queues=["copied", "moved"])
        spark = SparkResource(spark_config=spark_config())
        try:
            _Rounds(transport, connection, spark, plan).measure(messages, report)
        finally:
            spark.spark_session.stop()


class _Rounds:
    def __init__(self, transport: QueueTransport, connection: Any, spark: SparkResource, plan: Plan) -> None:
        self._transport = transport
        self._connection = connection
        self._spark = spark
        self._plan = plan

    def measure(self, messages: list[OutgoingMessage], report: Report) -> None:
        """Rounds after one that warms Spark up: its compiler needs some hundred thousand rows to settle."""
        rows = self._rows(messages)
        say("warming Spark up")
        self._round(0, rows)
        watches, figures = [], []
        for number in range(1, self._plan.side_rounds + 1):
            watch, ran = self._round(number, rows)
            watches.append(watch)
            figures.append(ran)
            say(f"round {number} of {self._plan.side_rounds}: {watch.in_short(len(messages))}")
        _tell(watches, figures, len(messages), report)

    def _round(self, number: int, rows: Sequence[peers.CopyRow]) -> tuple[Stopwatch, RunFigures]:
        tables = ", ".join(f'"{name}"' for name in TABLES)
        outside_transaction(self._connection, f"TRUNCATE {tables}")
        for queue in ("orders", "copied"):
            peers.copy_in(self._connection, queue, rows)
        outside_transaction(self._connection, "VACUUM (ANALYZE) orders, copied")
        outside_transaction(self._connection, "CHECKPOINT")
        watch, figures = Stopwatch(self._wal_position), RunFigures()
        work = [
            lambda: watch.time("pipeline", lambda: self._drain(figures)),
            lambda: watch.time("move", lambda: peers.move(self._connection, "copied", "moved", len(rows))),
        ]
        for one in work if number % 2 else reversed(work):
            one()
        self._check(len(rows))
        return watch, figures

    def _drain(self, figures: RunFigures) -> None:
        transformer = SparkTransformer(PIPELINE, lambda: self._spark.spark_session)
        recovery = Recovery(PIPELINE, self._transport, transformer)
        drain = Drain(
            PIPELINE, self._transport, "bench", recovery.attempt, slots=PIPELINE.slots, on_attempt=figures.add
        )
        ended = drain.run()
        if ended.failure is not None:
            raise ended.failure

    def _check(self, count: int) -> None:
        for queue in ("billing", "shipping", "moved"):
            found = self._connection.execute(f"SELECT count(*) FROM {queue}").fetchone()[0]
            if found != count:
                raise RuntimeError(f"{queue} has {found} messages and should have {count}")
        self._connection.commit()

    def _rows(self, messages: list[OutgoingMessage]) -> list[peers.CopyRow]:
        (shipment,) = self._transport.sender.prepare(Operation("orders", message) for message in messages)
        return peers.copy_rows(shipment.rows())

    def _wal_position(self) -> int:
        row = self._connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
        self._connection.commit()
        return int(row[0])


def _tell(watches: Sequence[Stopwatch], figures: Sequence[RunFigures], count: int, report: Report) -> None:
    speed = {name: [count / watch.seconds[name] for watch in watches] for name in ("pipeline", "move")}
    report.add("ratios", "pipeline_vs_move", paired(speed["pipeline"], speed["move"]), PIPELINE_VS_MOVE)
    for name, values in speed.items():
        report.add("messages_per_s", name, values)
        report.add("wal_bytes_per_message", name, [watch.bytes[name] / count for watch in watches])
    for step in ("read", "transform", "complete"):
        report.add("milliseconds_per_1000", step, [getattr(ran, f"{step}_seconds") / count * 1e6 for ran in figures])
    report.settings["batches"] = statistics.median(ran.batches for ran in figures)
