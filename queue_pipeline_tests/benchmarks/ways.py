"""All ways from an order to its invoice and parcel, each with its orders and what has to hold afterwards."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from queue_pipeline.processing.run.run_metrics import RunFigures
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.benchmarks import jdbc, ours, peers
from queue_pipeline_tests.benchmarks.consumers.crew import Crew
from queue_pipeline_tests.benchmarks.orders import INPUT, MOVED, Orders, Source
from queue_pipeline_tests.benchmarks.plan import Plan
from queue_pipeline_tests.benchmarks.rounds import Way
from queue_pipeline_tests.benchmarks.workbench import Workbench
from queue_pipeline_tests.benchmarks.workload import BAD, make_samples
from queue_pipeline_tests.support.spark.warm_spark import private_spark

BY_HAND_BATCH = 5_000
RECEIVES_IN_FLIGHT = 4
"""Processes that take one message per transaction."""
PGQUEUER = {"size": 4, "batch": 100, "connections": 20, "in_work": 1_000}
"""The fastest of several layouts, by the median of three passes; docs/benchmarks lists which were tried."""


class Ways:
    """Makes the ways on one database; the processes of the peers are started once and stay.

    Spark is started by the first way that needs it.
    """

    def __init__(self, url: str, transport: QueueTransport, connection: Any, bench: Workbench, plan: Plan) -> None:
        self._orders = orders = Orders(transport, connection)
        self._url = url
        self._transport = transport
        self._connection = connection
        self._bench = bench
        self._plan = plan
        self._usual = orders.load("usual", make_samples(plan.source_rows, BAD))
        self._clean = orders.load("clean", make_samples(plan.source_rows, 0.0))
        self.figures: list[RunFigures] = []
        """Of each time that the example was run."""

    def move(self) -> Way:
        """What the database itself can do: rows change tables, nothing is transformed."""
        orders, rows = self._orders, self._plan.rows

        def work() -> None:
            while peers.move(self._connection, INPUT, MOVED, self._plan.batch):
                pass

        return Way("move", rows, lambda: orders.send(self._usual, rows), work, lambda: orders.check_moved("move", rows))

    def example(self) -> Way:
        """The worked example as it ships, one order of a hundred bad."""

        def work() -> None:
            self.figures.append(ours.drain(ours.example(), self._transport, self._bench.spark))

        return self._way("example", self._plan.rows, work)

    def example_clean(self) -> Way:
        """The same without a bad order."""
        return self._way(
            "example_clean",
            self._plan.rows,
            lambda: ours.drain(ours.example(), self._transport, self._bench.spark),
            source=self._clean,
        )

    def executors(self) -> Way:
        """The worked example by large batches that Spark's executors read and stage."""
        pipeline = ours.by_executors(self._plan.rows)
        return self._way("executors", self._plan.rows, lambda: ours.drain(pipeline, self._transport, self._bench.spark))

    def jdbc(self) -> Way:
        """The same transform between Spark's JDBC reader and writer."""
        return self._way(
            "jdbc",
            self._plan.rows,
            lambda: jdbc.process_orders(self._bench.spark.spark_session, self._url, self._connection),
            taken=False,
        )

    @contextlib.contextmanager
    def example_young(self) -> Iterator[Way]:
        """The example by a Spark that was started for it and has not seen a message; its start is not timed.

        For use before Spark is started here: at the end it stops the session of this process, too.
        """
        with (
            tempfile.TemporaryDirectory(prefix="queue_pipeline-bench-", ignore_cleanup_errors=True) as folder,
            private_spark(Path(folder)),
            Crew("young_spark", "YoungSpark", self._url, 1) as crew,
        ):
            yield self._way("example_young", self._plan.young_rows, crew.drain)

    @contextlib.contextmanager
    def by_hand(self) -> Iterator[list[Way]]:
        """The same by hand, in one process and in two, and tuned."""
        with (
            Crew("by_hand", "ByHand", self._url, 2) as by_hand,
            Crew("by_hand_tuned", "ByHandTuned", self._url, 2) as tuned,
        ):

            def way(name: str, crew: Crew, size: int) -> Way:
                return self._way(f"{name}_x{size}", self._plan.rows, lambda: crew.drain(size=size, batch=BY_HAND_BATCH))

            yield [way("by_hand", by_hand, 1), way("by_hand", by_hand, 2), way("by_hand_tuned", tuned, 2)]

    @contextlib.contextmanager
    def single_message(self) -> Iterator[Way]:
        """One message per transaction."""
        with Crew("single_message", "SingleMessage", self._url, RECEIVES_IN_FLIGHT) as crew:
            yield self._way("single_message", self._plan.single_rows, lambda: crew.drain(size=RECEIVES_IN_FLIGHT))

    @contextlib.contextmanager
    def pgqueuer(self) -> Iterator[Way]:
        """The best Python queue: one job per message."""
        orders, source, count = self._orders, self._usual, self._plan.pgqueuer_rows
        with Crew("pgqueuer_jobs", "PgQueuerJobs", self._url, PGQUEUER["size"]) as crew:
            crew.tell("install")
            orders.also_empty("pgqueuer", "pgqueuer_log")

            def prepare() -> None:
                orders.clear()
                crew.tell("fill", source=source.table, count=count)

            yield Way(
                "pgqueuer",
                count,
                prepare,
                lambda: crew.drain(**PGQUEUER),
                lambda: orders.check("pgqueuer", source, count),
            )

    def _way(
        self,
        name: str,
        count: int,
        work: Callable[[], object],
        *,
        source: Source | None = None,
        taken: bool = True,
    ) -> Way:
        orders, sent = self._orders, source or self._usual
        return Way(
            name,
            count,
            lambda: orders.send(sent, count),
            work,
            lambda: orders.check(name, sent, count, taken=taken),
        )
