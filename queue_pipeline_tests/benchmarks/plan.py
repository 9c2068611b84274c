"""How much a run measures, and how often."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

FULL_ROWS = 200_000
QUICK_ROWS = 20_000

BACKLOGS = {"1k": 1_000, "10k": 10_000, "100k": 100_000, "1m": 1_000_000}
"""Messages that wait, by the name that the figures have; the same, quick or not: the names promise them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of one run; every part takes from here what it needs."""

    quick: bool = False
    rows: int = FULL_ROWS
    rounds: int = 5
    pipeline_rounds: int = 5
    """Of the ways through the pipeline and its peers, each of which takes longest to get ready."""
    bloat_rounds: int = 9
    """More than of others: autovacuum works beside them, on either queue when it likes."""
    batch: int = 10_000
    stream_rows: int = 200_000
    """Always as many, quick or not: that is the number that the limit of memory is about."""
    peek_cap: int = 1_000
    peeks: int = 200
    """A round, of each backlog."""
    side_rounds: int = 3
    """Of what stands alone and has no peer to be paired with."""
    warm_up_rows: int = 10_000
    spark_warm_ups: int = 2
    """How often all rows go through Spark by each way before anything counts."""
    pipeline_warm_ups: int = 8
    """How often more by the driver's way: Java's compiler needs a million messages, as a server that stays up gets."""
    single_rows: int = 5_000
    """Messages of a consumer that takes them one by one, for each process."""
    pgqueuer_rows: int = 10_000
    procrastinate_rows: int = 2_000
    worked_off: int = 10_000
    """Messages that are taken from each backlog in a round, the smallest of which holds no more."""
    body_bytes: int = 200 * 1024 * 1024
    """Bytes of all bodies of one size together."""
    receiver_rows: int = 100_000
    passed: int = 1_000_000
    """Messages that pass through a queue before it is compared with a fresh one."""
    executor_backlogs: tuple[str, ...] = ("10k", "100k", "1m")
    """Backlogs that are worked off by executors."""
    latency_warm_up: int = 15
    latency_rounds: int = 5


def make_plan(*, quick: bool, rows: int | None = None) -> Plan:
    """The full plan, or one of a few minutes for all parts; `rows` is how many messages are moved."""
    if not quick:
        return Plan(rows=rows or FULL_ROWS)
    return Plan(
        quick=True,
        rows=rows or QUICK_ROWS,
        rounds=2,
        pipeline_rounds=1,
        bloat_rounds=3,
        peeks=100,
        side_rounds=1,
        spark_warm_ups=1,
        pipeline_warm_ups=3,
        single_rows=500,
        pgqueuer_rows=2_000,
        procrastinate_rows=400,
        body_bytes=5 * 1024 * 1024,
        receiver_rows=20_000,
        executor_backlogs=(),
        latency_warm_up=1,
        latency_rounds=1,
    )


def say(text: str) -> None:
    """Tell a waiting person what goes on; never on stdout, which belongs to the result."""
    print(f"bench: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
