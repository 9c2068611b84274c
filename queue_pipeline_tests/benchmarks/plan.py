"""How much a run measures, and how often."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from typing import Any

FULL_ROWS = 200_000
QUICK_ROWS = 20_000
EXAMPLE_ROWS = 100_000

BACKLOGS = {"1k": 1_000, "10k": 10_000, "100k": 100_000, "1m": 1_000_000}
"""Messages that wait, by the name that the figures have; the same, quick or not: the names promise them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of one run; every part takes from here what it needs."""

    quick: bool = False
    rows: int = FULL_ROWS
    rounds: int = 5
    pipeline_rounds: int = 3
    """Of the worked example and its peers."""
    pipeline_warm_ups: int = 3
    """How often all rows go through the example before anything counts: Java's compiler needs about 600,000."""
    spark_warm_ups: int = 1
    """How often all rows go through the other ways that use Spark before anything counts."""
    source_rows: int = 20_000
    """Different orders; a longer queue repeats them."""
    young_rows: int = 200_000
    """The first messages after Spark was started."""
    young_rounds: int = 2
    """How often Spark is started for them."""
    single_rows: int = 20_000
    """Messages of the consumer that takes them one by one."""
    pgqueuer_rows: int = 10_000
    bloat_rounds: int = 9
    """More than of others: autovacuum works beside them, on either queue at any time. None: not measured."""
    batch: int = 10_000
    stream_rows: int = 200_000
    """Always as many, quick or not: that is the number that the limit of memory is about."""
    peek_cap: int = 1_000
    peeks: int = 200
    """A round, of each backlog."""
    side_rounds: int = 3
    """Of what stands alone and has no peer to be paired with."""
    warm_up_rows: int = 10_000
    worked_off: int = 10_000
    """Messages that are taken from each backlog in a round, the smallest of which holds no more."""
    body_bytes: int = 100 * 1024 * 1024
    """Bytes of all bodies of one size together."""
    receiver_rows: int = 100_000
    passed: int = 1_000_000
    """Messages that pass through a queue before it is compared with a fresh one."""
    executor_backlogs: tuple[str, ...] = ("10k", "100k")
    """Backlogs that executors process."""
    latency_warm_up: int = 15
    latency_rounds: int = 5


FULL = Plan()
QUICK = Plan(
    quick=True,
    rows=QUICK_ROWS,
    rounds=2,
    pipeline_rounds=1,
    pipeline_warm_ups=2,
    young_rows=QUICK_ROWS,
    young_rounds=1,
    single_rows=4_000,
    pgqueuer_rows=2_000,
    bloat_rounds=0,
    peeks=100,
    side_rounds=1,
    body_bytes=5 * 1024 * 1024,
    receiver_rows=20_000,
    executor_backlogs=(),
    latency_warm_up=1,
    latency_rounds=1,
)
EXAMPLE = replace(FULL, rows=EXAMPLE_ROWS, pipeline_rounds=2, pipeline_warm_ups=4)
"""For the part `example`: two to three minutes."""


def make_plan(part: str, *, quick: bool, rows: int | None = None, rounds: int | None = None) -> Plan:
    """The plan of a part, or one of a few minutes for all parts; `rows` and `rounds` replace its own."""
    plan = QUICK if quick else EXAMPLE if part == "example" else FULL
    changes: dict[str, Any] = {"rows": rows, "pipeline_rounds": rounds}
    return replace(plan, **{name: value for name, value in changes.items() if value is not None})


def say(text: str) -> None:
    """Report progress; never on stdout, which belongs to the result."""
    print(f"bench: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
