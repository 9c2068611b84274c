"""What a run found: medians, spreads and ratios, as JSON, as a table to read, and as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """A quantity measured several times."""

    median: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be; it is told, never enforced: machines are noisy."""

    at_least: float | None = None
    at_most: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value is within the target."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        bounds = (("≥", self.at_least), ("≤", self.at_most))
        return " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)

    def as_json(self, value: float) -> dict[str, Any]:
        """The bounds that there are, and whether the value is within them."""
        bounds = {"at_least": self.at_least, "at_most": self.at_most}
        return {
            **{name: bound for name, bound in bounds.items() if bound is not None},
            "holds": self.holds(value),
        }


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
    targets: dict[tuple[str, str], Target] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def add(self, group: str, name: str, values: Sequence[float], target: Target | None = None) -> None:
        """Keep a figure, with the target that it has to meet."""
        self.figures.setdefault(group, {})[name] = summarise(values)
        if target is not None:
            self.targets[group, name] = target

    def as_json(self) -> dict[str, Any]:
        """The document of `--json`: a value a figure, and its spread under the same names."""
        spread: dict[str, dict[str, dict[str, float]]] = {}
        values: dict[str, dict[str, float]] = {}
        for group, figures in self.figures.items():
            digits = _DIGITS.get(group, 1)
            values[group] = {name: round(figure.median, digits) for name, figure in figures.items()}
            spread[group] = {
                name: {"lowest": round(figure.lowest, digits), "highest": round(figure.highest, digits)}
                for name, figure in figures.items()
            }
        targets = {
            name: target.as_json(self.figures[group][name].median) for (group, name), target in self.targets.items()
        }
        return {
            **values,
            "spread": spread,
            "targets": targets,
            "versions": self.versions,
            "settings": self.settings,
        }

    def as_text(self) -> str:
        """Tables for a terminal."""
        blocks = [_plain_table(rows) for rows in self._tables()]
        return "\n\n".join([*blocks, _facts("versions", self.versions), _facts("settings", self.settings)])

    def as_markdown(self) -> str:
        """The same as a document."""
        facts = [f"- {_facts(name, of)}" for name, of in (("versions", self.versions), ("settings", self.settings))]
        return (
            "\n\n".join(["# Benchmark", *(_markdown_table(rows) for rows in self._tables()), "\n".join(facts)]) + "\n"
        )

    def _tables(self) -> Iterable[list[list[str]]]:
        for group, figures in self.figures.items():
            write = _FORMATS.get(group, "{:,.1f}".format)
            rows = [[group, "median", "lowest", "highest", "target"]]
            for name, figure in figures.items():
                target = self.targets.get((group, name))
                verdict = f"{target} {'holds' if target.holds(figure.median) else 'MISSED'}" if target else ""
                rows.append([name, write(figure.median), write(figure.lowest), write(figure.highest), verdict])
            yield rows


_DIGITS: dict[str, int | None] = {
    "ratios": 3,
    "milliseconds": 3,
    "milliseconds_per_1000": 1,
    "seconds": 2,
    "messages_per_s": None,
    "wal_bytes_per_message": None,
}
_FORMATS: dict[str, Callable[[float], str]] = {
    "ratios": "{:.2f}".format,
    "milliseconds": "{:,.2f}".format,
    "seconds": "{:,.2f}".format,
    "messages_per_s": "{:,.0f}".format,
    "wal_bytes_per_message": "{:,.0f}".format,
}


def _plain_table(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:4], widths[1:4], strict=True)]
        lines.append("  ".join([*cells, row[4]]).rstrip())
    return "\n".join(lines)


def _markdown_table(rows: list[list[str]]) -> str:
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|---|---:|---:|---:|---|", *body])


def _facts(name: str, facts: Mapping[str, Any]) -> str:
    return f"{name}: " + ", ".join(f"{key} {value}" for key, value in facts.items())
