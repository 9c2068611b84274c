"""The scale part: large batches by Spark's executors, beside the driver's way and a plain JDBC pipeline of Spark's."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from queue_pipeline.orchestration.spark_resource import SparkResource
from queue_pipeline.processing.drain import Drain
from queue_pipeline.processing.executors.staging import Executors
from queue_pipeline.processing.figures import RunFigures
from queue_pipeline.processing.outcomes import each, send
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.recovery import Recovery
from queue_pipeline.processing.spark_setting import PROPERTIES_VARIABLE, spark_config
from queue_pipeline.processing.transforming import SparkTransformer
from queue_pipeline.transport import Operation, QueueTransport
from queue_pipeline.transport import headers as wire
from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.plan import Plan, say
from queue_pipeline_tests.benchmarks.report import Report, Target, paired
from queue_pipeline_tests.benchmarks.server import outside_transaction, private_postgresql, stated_settings, versions
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch
from queue_pipeline_tests.benchmarks.stream_reader import forget_peak_memory, peak_memory_mb
from queue_pipeline_tests.benchmarks.workload import make_messages, message_size
from queue_pipeline_tests.support.spark import private_spark

EXECUTOR_VS_JDBC = Target(at_least=0.7)
GROWTH = Target(at_most=1.3)
DRIVER_JAR = Path("/usr/share/java/postgresql.jar")
BATCH = 100_000
"""Messages of an executors' batch; two of them are in work at once."""
WAYS = ("jdbc", "driver", "executors")
TABLES = ("sent", "sent.Claimed", "QueueClaims", "QueueOutbox", "results", "moved")
ORDER = (
    "`order` bigint NOT NULL, customer string NOT NULL, placed string, note string, "
    "lines array<struct<sku: string, quantity: int, price: double>>"
)
HEADERS = (
    wire.MESSAGE_ID,
    wire.CORRELATION_ID,
    wire.CONVERSATION_ID,
    wire.RELATED_TO,
    wire.MESSAGE_INTENT,
    wire.CONTENT_TYPE,
    wire.TIME_SENT,
    wire.ORIGINATING_ENDPOINT,
)


def invoice(order: Column) -> Column:
    """What both sides compute of an order."""
    total = F.aggregate(order.lines, F.lit(0.0), lambda sum_, line: sum_ + line.quantity * line.price)
    kept = (order[name].alias(name) for name in ("order", "customer", "note", "lines"))
    return F.struct(*kept, F.round(total, 2).alias("total"))


def send_invoices(messages: DataFrame) -> DataFrame:
    """The transform of the pipeline."""
    return messages.select("origin", each(send("results", json=invoice(F.col("payload")))))


def declare(**options: Any) -> QueuePipeline:
    """The pipeline that is measured."""
    given = {"name": "invoices", "input_queue": "sent", "output_queues": ["results"], "body_schema": ORDER}
    return QueuePipeline(**given, transform=send_invoices, linger_seconds=0.0, **options)


PIPELINES = {
    "driver": declare(travel="driver"),
    "executors": declare(travel="executors", batch_messages=BATCH, batch_bytes=2 * 1024**3),
}


def run(plan: Plan, report: Report) -> None:
    """Measure on PostgreSQL with a warm Spark of its own."""
    most = max(plan.rows, *plan.growth)
    say(f"making {most:,} messages")
    messages = make_messages(most)
    size = message_size(messages)
    report.settings.update({"rows": plan.rows, "rounds": plan.side_rounds, "executor_batch": BATCH})
    report.settings.update({"header_bytes": size.header_bytes, "body_bytes": size.body_bytes})
    with (
        tempfile.TemporaryDirectory() as folder,
        _with_jdbc(),
        private_spark(Path(folder)),
        private_postgresql() as cluster,
        QueueTransport(cluster.url(), endpoint="sent") as transport,
        peers.connect(cluster.url()) as connection,
    ):
        report.versions.update({**versions(transport, connection), "pyspark": metadata.version("pyspark")})
        report.settings["postgresql"] = stated_settings(connection)
        connection.commit()
        transport.install("sent", plain_queues=["results", "moved"])
        (shipment,) = transport.sender.prepare(Operation("sent", message) for message in messages)
        rows = peers.copy_rows(shipment.rows())
        del messages, shipment
        spark = SparkResource(spark_config=spark_config())
        try:
            scale = _Scale(transport, connection, spark, cluster.url())
            scale.compare(rows[: plan.rows], plan, report)
            scale.grow(rows, plan, report)
        finally:
            spark.spark_session.stop()


@contextlib.contextmanager
def _with_jdbc() -> Iterator[None]:
    """Spark with Debian's JDBC driver."""
    if not DRIVER_JAR.exists():
        raise SystemExit(f"bench: {DRIVER_JAR} is missing; install Debian's libpostgresql-jdbc-java")
    before = os.environ.get(PROPERTIES_VARIABLE)
    os.environ[PROPERTIES_VARIABLE] = f"spark.jars={DRIVER_JAR}"
    try:
        yield
    finally:
        os.environ.pop(PROPERTIES_VARIABLE)
        if before is not None:
            os.environ[PROPERTIES_VARIABLE] = before


class _Scale:
    def __init__(self, transport: QueueTransport, connection: Any, spark: SparkResource, url: str) -> None:
        self._transport = transport
        self._connection = connection
        self._spark = spark
        self._grown = 0.0
        address = urlsplit(url)
        self._jdbc = {
            "url": f"jdbc:postgresql://{address.hostname}:{address.port}{address.path}",
            "user": address.username,
            "password": address.password,
            "driver": "org.postgresql.Driver",
        }

    def compare(self, rows: Sequence[peers.CopyRow], plan: Plan, report: Report) -> None:
        """Rounds of all ways in turn, after one that warms Java's compiler up."""
        watches: list[Stopwatch] = []
        for number in range(plan.side_rounds + 1):
            watch = Stopwatch()
            for way in WAYS if number % 2 else reversed(WAYS):
                self._measure(way, rows, watch)
            say(f"{f'round {number} of {plan.side_rounds}' if number else 'warming up'}: {watch.in_short(len(rows))}")
            watches += [watch] if number else []
        speed = {way: [len(rows) / watch.seconds[way] for watch in watches] for way in WAYS}
        report.add("ratios", "executor_vs_jdbc", paired(speed["executors"], speed["jdbc"]), EXECUTOR_VS_JDBC)
        report.add("ratios", "executor_vs_driver", paired(speed["executors"], speed["driver"]))
        for way, values in speed.items():
            report.add("messages_per_s", way, values)

    def grow(self, rows: Sequence[peers.CopyRow], plan: Plan, report: Report) -> None:
        """The cost of a message by the executors as the backlog grows, and the memory of this process."""
        cost: dict[int, list[float]] = {count: [] for count in plan.growth}
        memory: dict[int, list[float]] = {count: [] for count in plan.growth}
        for _ in range(plan.side_rounds):
            for count in plan.growth:
                watch = Stopwatch()
                self._measure("executors", rows[:count], watch)
                cost[count].append(watch.seconds["executors"] / count * 1e6)
                memory[count].append(self._grown)
                say(f"{count:,} waiting: {cost[count][-1]:.0f} us a message")
        least, most = min(plan.growth), max(plan.growth)
        report.add("ratios", f"growth_{_short(least)}_to_{_short(most)}", paired(cost[most], cost[least]), GROWTH)
        for count in plan.growth:
            report.add("milliseconds_per_1000", f"executors_{count}", cost[count])
            report.add("driver_megabytes_more", f"executors_{count}", memory[count])
        report.settings["growth"] = list(plan.growth)

    def _measure(self, way: str, rows: Sequence[peers.CopyRow], watch: Stopwatch) -> None:
        outside_transaction(self._connection, "TRUNCATE " + ", ".join(f'"{name}"' for name in TABLES))
        peers.copy_in(self._connection, "sent", rows)
        outside_transaction(self._connection, "VACUUM (ANALYZE) sent")
        outside_transaction(self._connection, "CHECKPOINT")
        forget_peak_memory()
        before = peak_memory_mb()
        watch.time(way, lambda: self._copy(len(rows)) if way == "jdbc" else self._drain(PIPELINES[way]))
        self._grown = peak_memory_mb() - before
        target = "moved" if way == "jdbc" else "results"
        found = self._connection.execute(f"SELECT count(*) FROM {target}").fetchone()[0]
        self._connection.commit()
        if found != len(rows):
            raise RuntimeError(f"{way}: {target} has {found} messages and should have {len(rows)}")

    def _drain(self, pipeline: QueuePipeline) -> None:
        transformer = SparkTransformer(pipeline, lambda: self._spark.spark_session)
        executors = Executors(pipeline, self._transport, lambda: self._spark.spark_session)
        recovery = Recovery(pipeline, self._transport, transformer, executors)
        figures = RunFigures()
        drain = Drain(
            pipeline, self._transport, "bench", recovery.attempt, slots=pipeline.slots, on_attempt=figures.add
        )
        ended = drain.run()
        if ended.failure is not None:
            raise ended.failure

    def _copy(self, count: int) -> None:
        """What Spark offers by itself: no claim, no fence, no ids that a replay makes again, nothing deleted."""
        first, last = self._connection.execute("SELECT min(seq), max(seq) FROM sent").fetchone()
        self._connection.commit()
        bounds = {"lowerBound": first, "upperBound": last + 1, "numPartitions": max(2, count // 10_000)}
        read = self._spark.spark_session.read.format("jdbc").options(**self._jdbc, dbtable="sent", fetchsize=1_000)
        rows = read.options(partitionColumn="seq", **bounds).load()
        related = F.get_json_object("headers", f"$['{wire.MESSAGE_ID}']")
        values = [F.uuid(), related, related, related, *map(F.lit, ("Send", "application/json", "now", "bench"))]
        headers = F.map_from_arrays(F.array(*map(F.lit, HEADERS)), F.array(*values))
        order = F.from_json(F.col("body").cast("string"), ORDER)
        results = rows.select(
            F.uuid().alias("id"),
            F.to_json(headers).alias("headers"),
            F.to_json(invoice(order)).cast("binary").alias("body"),
        )
        writer = results.write.format("jdbc").options(**self._jdbc, dbtable="moved", stringtype="unspecified")
        writer.option("batchsize", 1_000).mode("append").save()


def _short(count: int) -> str:
    return f"{count // 1_000_000}m" if count >= 1_000_000 else f"{count // 1_000}k"
