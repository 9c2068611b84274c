"""What a run found: medians, spreads and ratios, and the JSON document that `--json` prints."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from queue_pipeline_tests.benchmarks.targets import TARGETS, Target

WAL = "wal_bytes_per_message"
"""The one figure that stands alone in the document: what the pipeline writes from a message to its result."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A quantity measured several times."""

    median: float
    lowest: float
    highest: float


def summarise(values: Sequence[float]) -> Figure:
    """Median and spread of what the rounds measured."""
    return Figure(statistics.median(values), min(values), max(values))


def paired(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Ratios within each round: what disturbs the machine for a while disturbs both sides of a pair."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


@dataclass
class Report:
    """Collects the figures of the parts that ran; a part that did not run leaves no trace.

    A group is a key of the JSON document, a name a key within it.
    """

    figures: dict[str, dict[str, Figure]] = field(default_factory=dict)
    targets: dict[tuple[str, str], Target] = field(default_factory=lambda: dict(TARGETS))
    wal: float | None = None
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What a reader has to know before reading a figure."""

    def add(self, group: str, name: str, values: Sequence[float]) -> None:
        """Keep a figure."""
        self.figures.setdefault(group, {})[name] = summarise(values)

    def target(self, group: str, name: str) -> Target | None:
        """What the figure should be, if there is a target."""
        return self.targets.get((group, name))

    def as_json(self) -> dict[str, Any]:
        """The document of `--json`: a value a figure, and its spread under the same names."""
        spread: dict[str, dict[str, dict[str, float]]] = {}
        values: dict[str, Any] = {}
        targets: dict[str, dict[str, Any]] = {}
        for group, figures in self.figures.items():
            digits = _DIGITS.get(group, 1)
            values[group] = {name: round(figure.median, digits) for name, figure in figures.items()}
            spread[group] = {
                name: {"lowest": round(figure.lowest, digits), "highest": round(figure.highest, digits)}
                for name, figure in figures.items()
            }
            for name, figure in figures.items():
                if (target := self.target(group, name)) is not None:
                    targets[name] = target.as_json(figure.median)
        if self.wal is not None:
            values[WAL] = round(self.wal)
        if self.notes:
            values["notes"] = self.notes
        return {**values, "spread": spread, "targets": targets, "versions": self.versions, "settings": self.settings}


_DIGITS: dict[str, int | None] = {
    "ratios": 3,
    "milliseconds": 3,
    "latency_s": 2,
    "megabytes": 2,
    "messages_per_s": None,
    "wal_bytes": None,
}
