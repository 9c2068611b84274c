"""Peek, purge and audit: what is done to a queue now and then must not cost more because messages wait."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

from queue_pipeline_tests.benchmarks.backlogs import EXPIRED, Backlogs, fill, settle
from queue_pipeline_tests.benchmarks.plan import Plan
from queue_pipeline_tests.benchmarks.report import Report, paired

PURGED = 1_000
"""Messages that have expired in each queue."""
AUDITS = 5


def tell_peeks(backlogs: Backlogs, sizes: Sequence[str], plan: Plan, report: Report) -> None:
    """The same peek on short queues and on long ones, by turns."""
    queues = {size: backlogs.queue(size) for size in sizes}
    medians: dict[str, list[float]] = {size: [] for size in sizes}
    for number in range(plan.rounds + 1):
        took: dict[str, list[float]] = {size: [] for size in sizes}
        for _ in range(plan.peeks):
            for size, queue in queues.items():
                took[size].append(_milliseconds(partial(backlogs.transport.peek, queue, plan.peek_cap)))
        if number:  # the first round only warms up
            for size in sizes:
                medians[size].append(statistics.median(took[size]))
    least, most = sizes[0], sizes[-1]
    report.add("ratios", f"peek_{most}_vs_{least}", paired(medians[most], medians[least]))
    for size in sizes:
        report.add("milliseconds", f"peek_{size}", medians[size])


def tell_purges(backlogs: Backlogs, sizes: Sequence[str], plan: Plan, report: Report) -> None:
    """As many expired messages in each queue, among more and more that have not."""
    took: dict[str, list[float]] = {size: [] for size in sizes}
    for _ in range(plan.side_rounds):
        for size in sizes:
            queue = backlogs.queue(size)
            fill(backlogs.connection, queue, PURGED, EXPIRED)
            settle(backlogs.connection, queue)
            took[size].append(_milliseconds(partial(_purge, backlogs, queue)))
    for size in sizes:
        report.add("milliseconds", f"purge_{size}", took[size])


def tell_audits(backlogs: Backlogs, sizes: Sequence[str], report: Report) -> None:
    """Whether all indexes are there and in order."""
    took: dict[str, list[float]] = {size: [] for size in sizes}
    for _ in range(AUDITS):
        for size in sizes:
            queue = backlogs.queue(size)
            took[size].append(_milliseconds(partial(backlogs.transport.audit_indexes, queue)))
    for size in sizes:
        report.add("milliseconds", f"audit_{size}", took[size])


def _purge(backlogs: Backlogs, queue: str) -> None:
    purged = backlogs.transport.purge(queue)
    if purged != PURGED:
        raise RuntimeError(f"{queue}: {purged:,} messages were purged, and {PURGED:,} had expired")


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000
