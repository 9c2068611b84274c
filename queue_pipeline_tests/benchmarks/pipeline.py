"""The pipeline part: the same orders from queue to queue, by all ways in turn."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from queue_pipeline_tests.benchmarks import ours
from queue_pipeline_tests.benchmarks.comparison import best_peer, ratios
from queue_pipeline_tests.benchmarks.orders import Orders
from queue_pipeline_tests.benchmarks.plan import Plan, say
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.server import wal_position
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch
from queue_pipeline_tests.benchmarks.ways import PGQUEUER, PROCRASTINATE, Way, Ways
from queue_pipeline_tests.benchmarks.workbench import Workbench
from queue_pipeline_tests.benchmarks.workload import make_messages, message_size

WRITTEN = ("move", "pipeline", "executors", "jdbc", "psycopg_1000_x1", "psycopg_10000_x1")
"""Whose bytes of write-ahead log are told."""


def run(plan: Plan, report: Report, bench: Workbench) -> None:
    """Measure on PostgreSQL with a warm Spark."""
    messages = make_messages(plan.rows)
    size = message_size(messages)
    with bench.database("pipeline", report, endpoint="sent") as (url, transport, connection):
        orders = Orders(transport, connection)
        orders.load(messages)
        ways = Ways(orders, url, transport, connection, bench.spark, plan)
        with ways.peers() as peers:
            every = [*ways.limits(), *ways.spark(), *peers]
            rounds = _Rounds(connection, every, plan)
            rounds.warm_up(ways.spark(), plan.spark_warm_ups)
            rounds.warm_up(ways.spark()[:1], plan.pipeline_warm_ups)
            ways.figures.clear()
            watches = rounds.run()
    speed = {way.name: [way.count / watch.seconds[way.name] for watch in watches] for way in every}
    for name, values in ratios(speed).items():
        report.add("ratios", name, values)
    for name, values in speed.items():
        report.add("messages_per_s", name, values)
    counts = {way.name: way.count for way in every}
    for name in WRITTEN:
        report.add("wal_bytes", name, [watch.bytes[name] / counts[name] for watch in watches])
    report.wal = statistics.median(watch.bytes["pipeline"] / plan.rows for watch in watches)
    for step in ("read", "transform", "complete"):
        spent = [getattr(ran, f"{step}_seconds") / plan.rows * 1e6 for ran in ways.figures]
        report.add("microseconds_per_message", f"pipeline_{step}", spent)
    fewer = {name: count for name, count in counts.items() if count != plan.rows}
    report.settings["pipeline"] = {
        "rows": plan.rows,
        "rounds": plan.pipeline_rounds,
        "header_bytes": size.header_bytes,
        "body_bytes": size.body_bytes,
        "batch": ours.by_driver().batch_messages,
        "executor_batch": ours.by_executors(plan.rows).batch_messages,
        "move_batch": plan.batch,
        "best_peer": best_peer(speed),
        **{f"rows of {name}": count for name, count in fewer.items()},
        **{f"pgqueuer {name}": value for name, value in PGQUEUER.items()},
        **{f"procrastinate {name}": value for name, value in PROCRASTINATE.items()},
    }


class _Rounds:
    def __init__(self, connection: Any, ways: Sequence[Way], plan: Plan) -> None:
        self._connection = connection
        self._ways = ways
        self._plan = plan

    def warm_up(self, ways: Sequence[Way], times: int) -> None:
        """Some rounds for Java's compiler, which nobody counts."""
        for number in range(1, times + 1):
            self._round(f"warming Spark up, {number} of {times}", ways)

    def run(self) -> list[Stopwatch]:
        """All ways in turn; who goes first changes from round to round."""
        ways, total = list(self._ways), self._plan.pipeline_rounds
        return [
            self._round(f"round {number} of {total}", ways if number % 2 else ways[::-1])
            for number in range(1, total + 1)
        ]

    def _round(self, name: str, ways: Sequence[Way]) -> Stopwatch:
        watch = Stopwatch(lambda: wal_position(self._connection))
        for way in ways:
            way.prepare()
            watch.time(way.name, way.work)
            way.check()
        told = ", ".join(f"{way.name} {way.count / watch.seconds[way.name]:,.0f}/s" for way in ways)
        say(f"{name}: {told}")
        return watch
