"""The part for people who tune: what a Spark session of its own costs a batch of one order of the worked example."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from pyspark.sql import SparkSession

from queue_pipeline.defs.orders import orders
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.results.envelopes import sending_of
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline_tests.benchmarks.plan import Plan
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.workbench import Workbench
from queue_pipeline_tests.support.processing.transforming import batch
from tools.example.orders import good_orders, order_body

BATCHES = 150
WARM_UPS = 60


class SharedSession(AttemptSessions):
    """The session of the run for every attempt: the least that it could cost, and no protection at all."""

    @contextlib.contextmanager
    def session(self) -> Iterator[SparkSession]:
        """The same session each time."""
        yield self._base()


def run(plan: Plan, report: Report, bench: Workbench) -> None:
    """Transform batches of one order, in turns with a session of their own and with one for all; without a database."""
    spark = bench.spark.spark_session
    ways = {"own": AttemptSessions(lambda: spark), "shared": SharedSession(lambda: spark)}
    transformers = {name: SparkTransformer(orders, sessions) for name, sessions in ways.items()}
    sending = sending_of(orders, str, {})
    one, took = good_orders(1), {name: list[float]() for name in ways}
    for _ in range(WARM_UPS + BATCHES):
        for name, transformer in transformers.items():
            message = batch(order_body(next(one)))
            start = time.perf_counter()
            transformer.transform(message, sending)
            took[name].append((time.perf_counter() - start) * 1e3)
    measured = {name: values[WARM_UPS:] for name, values in took.items()}
    for name, values in measured.items():
        report.add("milliseconds", f"batch_of_one_{name}_session", values)
    differences = [own - shared for own, shared in zip(measured["own"], measured["shared"], strict=True)]
    report.add("milliseconds", "session", differences)
    report.settings["sessions"] = {"batches": BATCHES, "warm-up batches": WARM_UPS}
