"""All ways from an order to its invoice, each with the messages that it gets and what has to hold afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from queue_pipeline.orchestration.spark_resource import SparkResource
from queue_pipeline.processing.figures import RunFigures
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.benchmarks import jdbc, ours, peers
from queue_pipeline_tests.benchmarks.consumers.crew import Crew
from queue_pipeline_tests.benchmarks.orders import Orders
from queue_pipeline_tests.benchmarks.plan import Plan

PGQUEUER = {"size": 4, "batch": 100, "connections": 20, "in_work": 1_000}
PROCRASTINATE = {"size": 4, "concurrency": 5}
"""Both: the fastest of several layouts, by the median of three passes; docs/benchmarks tells which were tried."""


@dataclass(frozen=True)
class Way:
    """One way: how many messages it gets, how they are sent, the work that is timed, and what is checked."""

    name: str
    count: int
    prepare: Callable[[], object]
    work: Callable[[], object]
    check: Callable[[], None]


class Ways:
    """Makes the ways on one database; the processes of the peers are started once and stay."""

    def __init__(
        self, orders: Orders, url: str, transport: QueueTransport, connection: Any, spark: SparkResource, plan: Plan
    ) -> None:
        self._orders = orders
        self._url = url
        self._transport = transport
        self._connection = connection
        self._spark = spark
        self._plan = plan
        self.figures: list[RunFigures] = []
        """Of each time that the driver's way was gone."""

    def limits(self) -> list[Way]:
        """What the database itself can do."""
        orders, rows, batch = self._orders, self._plan.rows, self._plan.batch

        def move() -> None:
            while peers.move(self._connection, "sent", "results", batch):
                pass

        return [
            Way(
                "copy",
                rows,
                orders.clear,
                lambda: peers.copy_in(self._connection, "results", orders.rows),
                lambda: orders.check_moved("copy", rows),
            ),
            Way("move", rows, lambda: orders.send(rows), move, lambda: orders.check_moved("move", rows)),
        ]

    def spark(self) -> list[Way]:
        """Ours, and Spark by itself."""
        driver, executors = ours.by_driver(), ours.by_executors(self._plan.rows)

        def drain() -> None:
            self.figures.append(ours.drain(driver, self._transport, self._spark))

        return [
            self._way("pipeline", self._plan.rows, drain),
            self._way("executors", self._plan.rows, lambda: ours.drain(executors, self._transport, self._spark)),
            self._way(
                "jdbc",
                self._plan.rows,
                lambda: jdbc.copy_invoices(self._spark.spark_session, self._url, self._connection),
                taken=False,
            ),
        ]

    @contextlib.contextmanager
    def peers(self) -> Iterator[list[Way]]:
        """What a team would use instead, ready to begin."""
        plan = self._plan
        with contextlib.ExitStack() as stack:

            def crew(module: str, name: str, size: int) -> Crew:
                return stack.enter_context(Crew(module, name, self._url, size))

            by_hand = crew("hand_written", "HandWritten", 2)
            single = crew("single_message", "SingleMessage", 4)
            jobs = crew("pgqueuer_jobs", "PgQueuerJobs", PGQUEUER["size"])
            tasks = crew("procrastinate_jobs", "ProcrastinateJobs", PROCRASTINATE["size"])
            for installed in (jobs, tasks):
                installed.tell("install")
            self._orders.also_empty("pgqueuer", "pgqueuer_log", "procrastinate_jobs", "procrastinate_events")

            def hand_written(batch: int, size: int) -> Way:
                name = f"psycopg_{batch}_x{size}"
                return self._way(name, plan.rows, lambda: by_hand.drain(size=size, batch=batch))

            def one_by_one(size: int) -> Way:
                # Four processes are not four times as fast; all should work for about as long.
                count = plan.single_rows * min(size, 2)
                return self._way(f"single_message_x{size}", count, lambda: single.drain(size=size))

            yield [
                *(hand_written(batch, size) for batch in (1_000, 10_000) for size in (1, 2)),
                *(one_by_one(size) for size in (1, 4)),
                self._queue_of_jobs("pgqueuer", plan.pgqueuer_rows, jobs, PGQUEUER),
                self._queue_of_jobs("procrastinate", plan.procrastinate_rows, tasks, PROCRASTINATE),
            ]

    def _way(self, name: str, count: int, work: Callable[[], object], *, taken: bool = True) -> Way:
        orders = self._orders
        return Way(
            name, count, lambda: orders.send(count), work, lambda: orders.check_invoices(name, count, taken=taken)
        )

    def _queue_of_jobs(self, name: str, count: int, crew: Crew, options: dict[str, int]) -> Way:
        def prepare() -> None:
            self._orders.clear()
            crew.tell("fill", count=count)

        orders = self._orders
        return Way(name, count, prepare, lambda: crew.drain(**options), lambda: orders.check_invoices(name, count))
