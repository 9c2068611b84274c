"""Growth: what a message costs to receive while more and more wait behind it, and while bodies get larger."""

from __future__ import annotations

import statistics
from functools import partial

from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline_tests.benchmarks import ours
from queue_pipeline_tests.benchmarks.backlogs import Backlogs, fill, settle
from queue_pipeline_tests.benchmarks.movement import OWNER
from queue_pipeline_tests.benchmarks.orders import Orders
from queue_pipeline_tests.benchmarks.plan import BACKLOGS, Plan, say
from queue_pipeline_tests.benchmarks.report import Report, paired
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch
from queue_pipeline_tests.benchmarks.stream_reader import forget_peak_memory, peak_memory_mb
from queue_pipeline_tests.benchmarks.workload import BAD, make_samples, sized_samples

SIZES = ("10k", "100k", "1m")
BATCH = 2_500
BODIES = {"0.2k": 205, "1k": 1_024, "10k": 10_240, "100k": 102_400}
"""Bytes of a body, by the name that the figures have."""


def tell_growth(backlogs: Backlogs, plan: Plan, report: Report) -> None:
    """Peek, claim and complete with a backlog behind: batch by batch by turns, the same number from each queue."""
    queues = {size: backlogs.queue(size) for size in SIZES}
    cost: dict[str, list[float]] = {size: [] for size in SIZES}
    for number in range(plan.rounds + 1):
        settle(backlogs.connection, *queues.values())
        watch = Stopwatch()
        for turn in range(plan.worked_off // BATCH):
            for size in SIZES if (number + turn) % 2 else reversed(SIZES):
                watch.time(size, partial(_work_off, backlogs.transport, queues[size]))
        for size in SIZES:
            fill(backlogs.connection, queues[size], plan.worked_off)
        if number:  # the first round only warms up
            for size in SIZES:
                cost[size].append(watch.seconds[size] / plan.worked_off * 1e6)
    for size in SIZES:
        report.add("microseconds_per_message", f"receive_of_{size}", cost[size])
    report.add("ratios", "growth_10k_to_1m", paired(cost["1m"], cost["10k"]))
    report.add("ratios", "growth_10k_to_100k", paired(cost["100k"], cost["10k"]))
    costs = ", ".join(f"{size} {statistics.median(values):.1f} us" for size, values in cost.items())
    say(f"a message received with a backlog behind: {costs}")


def tell_executors(orders: Orders, transport: QueueTransport, spark: SparkResource, plan: Plan, report: Report) -> None:
    """Whole backlogs processed by the executors, and how much more memory this process needs for it."""
    source = orders.load("usual", make_samples(plan.source_rows, BAD))
    for size in plan.executor_backlogs:
        count = BACKLOGS[size]
        orders.send(source, count)
        forget_peak_memory()
        before = peak_memory_mb()
        watch = Stopwatch()
        watch.time(size, partial(ours.drain, ours.by_executors(count), transport, spark))
        orders.check(f"executors, {size}", source, count)
        report.add("microseconds_per_message", f"executors_{size}", [watch.seconds[size] / count * 1e6])
        report.add("memory_mb", f"driver_more_by_executors_{size}", [peak_memory_mb() - before])
        say(f"{count:,} worked off by executors: {watch.seconds[size] / count * 1e6:.0f} us a message")


def tell_bodies(orders: Orders, transport: QueueTransport, spark: SparkResource, plan: Plan, report: Report) -> None:
    """The worked example with small bodies and with large ones."""
    pipeline, rows = ours.example(), {}
    for name, size in BODIES.items():
        rows[name] = count = min(plan.rows, plan.body_bytes // size)
        source = orders.load("sized", sized_samples(min(count, plan.source_rows), size))
        seconds: list[float] = []
        # The first time is for Java's compiler, which has not seen bodies of that shape.
        for number in range(plan.side_rounds + 1):
            orders.send(source, count)
            watch = Stopwatch()
            watch.time(name, lambda: ours.drain(pipeline, transport, spark))
            orders.check(f"bodies of {name}", source, count)
            seconds += [watch.seconds[name]] if number else []
        report.add("microseconds_per_message", f"body_{name}", [took / count * 1e6 for took in seconds])
        report.add("megabytes_per_s", f"body_{name}", [count * size / took / 1e6 for took in seconds])
        say(f"bodies of {name}: {seconds[-1] / count * 1e6:.0f} us a message")
    report.settings["scale"] |= {f"rows of body_{name}": count for name, count in rows.items()}


def _work_off(transport: QueueTransport, queue: str) -> None:
    """A batch as a receiver handles it: peek, claim, complete."""
    transport.peek(queue)
    claim = transport.claim(queue, OWNER, BATCH)
    if claim is None or claim.messages != BATCH:
        raise RuntimeError(f"{queue}: {claim.messages if claim else 0} messages were claimed instead of {BATCH}")
    transport.claims.complete(Completion(claim, read=None))
