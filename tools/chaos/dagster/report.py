"""What a run found: the account, and the longest standstill after each kind of fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tools.chaos.dagster.plan import BILLING, HOSTILE, ORDERS
from tools.chaos.dagster.standstill import Standstills
from tools.chaos.report import Report

GOOD = (ORDERS, BILLING)
"""The pipelines whose standstills are judged; the hostile one is slow on purpose."""


@dataclass(frozen=True)
class DagsterReport:
    """The outcome of one run."""

    report: Report
    standstills: Standstills
    longest_standstill: float

    @property
    def too_long(self) -> list[str]:
        """Kinds of faults after which orders stood still for too long."""
        return [kind for kind, _, good, _ in self._rows() if good > self.longest_standstill]

    @property
    def is_right(self) -> bool:
        """Whether every message is accounted for, and no fault stopped the orders for too long."""
        return self.report.is_right and not self.too_long

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            **self.report.as_json(),
            "right": self.is_right,
            "standstills": {
                kind: {"times": times, "orders_seconds": round(good, 1), "hostile_seconds": round(hostile, 1)}
                for kind, times, good, hostile in self._rows()
            },
            "too_long": self.too_long,
        }

    def lines(self) -> list[str]:
        """The same for people."""
        rows = self._rows()
        width = max((len(kind) for kind, *_ in rows), default=0)
        lines = [f"{'fault':{width}}  {'times':>5}  {'longest standstill: orders':>26}  {'hostile':>8}"]
        lines += [
            f"{kind:{width}}  {times:>5}  {good:>24.1f} s  {hostile:>6.1f} s" for kind, times, good, hostile in rows
        ]
        lines += [
            f"after {kind!r} the orders stood still for more than {self.longest_standstill:g} s"
            for kind in self.too_long
        ]
        verdict = self.report.lines()
        if self.too_long and self.report.is_right:
            verdict = [*verdict, "but pipelines stood still for too long"]
        return [*lines, "", *verdict]

    def _rows(self) -> Sequence[tuple[str, int, float, float]]:
        found = self.standstills
        return [
            (kind, times, found.of(kind, GOOD), found.of(kind, (HOSTILE,)))
            for kind, times in sorted(found.times.items())
        ]
