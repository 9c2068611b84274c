"""The latency part: a message sent to an idle queue until its results are there, through a real Dagster daemon."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from queue_pipeline.orchestration.names import PEEK_SENSOR
from queue_pipeline.transport import OutgoingMessage, QueueTransport
from queue_pipeline_tests.benchmarks.plan import Plan, say
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.workbench import Workbench
from queue_pipeline_tests.support.dagster.dagster_processes import START_SECONDS, dagster_processes
from queue_pipeline_tests.support.spark.warm_spark import private_spark
from queue_pipeline_tests.support.waiting import eventually
from tools.example import shop
from tools.example.orders import good_orders, order_body, order_message

LOOK_SECONDS = 0.02
PATIENCE_SECONDS = 180.0
LINGERING = 3
"""Messages a round that meet a run which is still there."""
STOP_SECONDS = 3.0
"""For Dagster to end by itself: the last run lingers, and what it would still write is not measured."""


def run(plan: Plan, report: Report, bench: Workbench) -> None:
    """Cold is the first message of all: no Spark yet. Warm starts a run, lingering meets one that is still there."""
    rounds = plan.latency_rounds
    report.settings["latency"] = {"rounds": rounds, "lingering a round": LINGERING, "warm_up": plan.latency_warm_up}
    with (
        tempfile.TemporaryDirectory(prefix="queue_pipeline-bench-", ignore_cleanup_errors=True) as folder,
        private_spark(Path(folder) / "spark") as settings,
        bench.database("latency", report) as (url, transport, _),
    ):
        shop.install(transport)
        orders = _orders()
        environment = {
            **os.environ,
            **settings,
            "QUEUE_PIPELINE_DATABASE": url,
            "QUEUE_PIPELINE_AUTOSTART": "1",
        }
        with dagster_processes(environment, stop_seconds=STOP_SECONDS) as dagster:
            eventually(dagster.is_ready, seconds=START_SECONDS)
            eventually(lambda: bool(dagster.ticks(PEEK_SENSOR)), seconds=START_SECONDS)
            say("cold: the first message starts Spark")
            report.add("latency_s", "cold", [_time(transport, next(orders))])
            say(f"warming up: {plan.latency_warm_up} messages one by one, for Java's compiler")
            for _ in range(plan.latency_warm_up):
                _time(transport, next(orders))
            warm: list[float] = []
            lingering: list[float] = []
            for number in range(rounds):
                eventually(lambda: all(run.is_over for run in dagster.runs()), seconds=START_SECONDS)
                warm.append(_time(transport, next(orders)))
                lingering += [_time(transport, next(orders)) for _ in range(LINGERING)]
                say(f"round {number + 1} of {rounds}: warm {warm[-1]:.2f} s, lingering {lingering[-1]:.2f} s")
            report.add("latency_s", "warm_launch", warm)
            report.add("latency_s", "lingering", lingering)


def _time(transport: QueueTransport, message: OutgoingMessage) -> float:
    """Seconds from the commit of the send until the result can be seen in the output queue."""
    before = transport.peek(shop.BILLING)
    transport.send(shop.ORDERS, message)
    start = time.perf_counter()
    while transport.peek(shop.BILLING) == before:
        if time.perf_counter() - start > PATIENCE_SECONDS:
            raise RuntimeError(f"no result after {PATIENCE_SECONDS:.0f} s; the logs of the run tell why")
        time.sleep(LOOK_SECONDS)
    return time.perf_counter() - start


def _orders() -> Iterator[OutgoingMessage]:
    return (order_message(order_body(order)) for order in good_orders(11))
