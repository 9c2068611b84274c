"""All ways from an order to its invoice and parcel, each with the orders that it gets and what has to hold afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from queue_pipeline.orchestration.spark_resource import SparkResource
from queue_pipeline.processing.figures import RunFigures
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.benchmarks import ours, peers
from queue_pipeline_tests.benchmarks.consumers.crew import Crew
from queue_pipeline_tests.benchmarks.orders import INPUT, MOVED, Orders, Source
from queue_pipeline_tests.benchmarks.plan import Plan
from queue_pipeline_tests.benchmarks.rounds import Way
from queue_pipeline_tests.benchmarks.workload import BAD, make_samples

BY_HAND_BATCH = 5_000


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
            self.figures.append(ours.drain(ours.example(), self._transport, self._spark))

        return self._way("example", self._plan.rows, work)

    def example_clean(self) -> Way:
        """The same without a bad order."""
        return self._way(
            "example_clean",
            self._plan.rows,
            lambda: ours.drain(ours.example(), self._transport, self._spark),
            source=self._clean,
        )

    @contextlib.contextmanager
    def by_hand(self) -> Iterator[list[Way]]:
        """The same by hand, in one process and in two."""
        with Crew("by_hand", "ByHand", self._url, 2) as crew:

            def way(size: int) -> Way:
                return self._way(
                    f"by_hand_x{size}", self._plan.rows, lambda: crew.drain(size=size, batch=BY_HAND_BATCH)
                )

            yield [way(1), way(2)]

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
