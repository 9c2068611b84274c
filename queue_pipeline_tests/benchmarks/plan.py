"""How much a run measures, and how often."""

from __future__ import annotations

import sys
from dataclasses import dataclass

FULL_ROWS = 200_000
QUICK_ROWS = 30_000


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of one run; every part takes from here what it needs."""

    rows: int = FULL_ROWS
    rounds: int = 5
    batch: int = 10_000
    stream_rows: int = 200_000
    """Always as many, quick or not: that is the number that the limit of memory is about."""
    peek_backlog: int = 1_000_000
    peek_backlog_small: int = 1_000
    peek_cap: int = 1_000
    peeks: int = 200
    """A round, of each backlog."""
    side_rounds: int = 3
    """Of what stands alone and has no peer to be paired with."""
    warm_up_rows: int = 10_000
    growth: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    """Backlogs that are worked off by executors."""


def make_plan(*, quick: bool, rows: int | None = None) -> Plan:
    """The full plan, or one that takes about a minute a part; `rows` is how many messages are moved."""
    if quick:
        return Plan(rows=rows or QUICK_ROWS, rounds=3, peek_backlog=200_000, side_rounds=1, growth=(10_000, 50_000))
    return Plan(rows=rows or FULL_ROWS)


def say(text: str) -> None:
    """Tell a waiting person what goes on; never on stdout, which belongs to the result."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
