"""A report as tables to read: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from queue_pipeline_tests.benchmarks.report import WAL, Report

_FORMATS: dict[str, Callable[[float], str]] = {
    "ratios": "{:,.2f}".format,
    "milliseconds": "{:,.2f}".format,
    "latency_s": "{:,.2f}".format,
    "megabytes": "{:,.2f}".format,
    "messages_per_s": "{:,.0f}".format,
    "wal_bytes": "{:,.0f}".format,
}


def as_text(report: Report) -> str:
    """Tables for a terminal."""
    blocks = [_plain_table(rows) for rows in _tables(report)]
    if report.wal is not None:
        blocks.append(f"{WAL}  {report.wal:,.0f}")
    return "\n\n".join([*report.notes, *blocks, *_facts(report)])


def as_markdown(report: Report, part: str, chart: str | None = None) -> str:
    """The same as a document, with the chart that was drawn of it."""
    blocks = [f"# Benchmark: {part}"]
    if chart is not None:
        blocks.append(f"![messages a second, {part}]({chart})")
    blocks += report.notes
    blocks += [_markdown_table(rows) for rows in _tables(report)]
    if report.wal is not None:
        blocks.append(f"Bytes of write-ahead log from a message to its result: {report.wal:,.0f}")
    return "\n\n".join([*blocks, "\n".join(f"- {fact}" for fact in _facts(report))]) + "\n"


def _tables(report: Report) -> Iterable[list[list[str]]]:
    for group, figures in report.figures.items():
        write = _FORMATS.get(group, "{:,.1f}".format)
        rows = [[group, "median", "lowest", "highest", "target"]]
        for name, figure in figures.items():
            target = report.target(group, name)
            verdict = f"{target} {'holds' if target.holds(figure.median) else 'MISSED'}" if target else ""
            rows.append([name, write(figure.median), write(figure.lowest), write(figure.highest), verdict])
        yield rows


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


def _facts(report: Report) -> list[str]:
    """A line for the versions, one for the settings of all, and one for those of each part."""
    common = {name: value for name, value in report.settings.items() if not isinstance(value, Mapping)}
    parts = {name: value for name, value in report.settings.items() if isinstance(value, Mapping)}
    named = {"versions": report.versions, "settings": common, **parts}
    return [f"{name}: {_list(facts)}" for name, facts in named.items() if facts]


def _list(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_value(value)}" for key, value in facts.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " / ".join(map(_value, value))
    return f"{value:,}" if isinstance(value, int | float) else str(value)
