"""Which figures of a part are drawn, and what they are called there."""

from __future__ import annotations

from queue_pipeline_tests.benchmarks.chart import Bar, Kind, draw
from queue_pipeline_tests.benchmarks.report import Report

Drawn = dict[str, tuple[str, Kind]]

PIPELINE: Drawn = {
    "move": ("limit: move inside the database", "limit"),
    "example": ("queue_pipeline", "ours"),
    "example_clean": ("queue_pipeline, no bad message", "ours"),
    "example_young": ("queue_pipeline, Spark just started", "ours"),
    "executors": ("queue_pipeline, executors", "ours"),
    "jdbc": ("Spark JDBC, no guarantees", "peer"),
    "by_hand_tuned_x2": ("psycopg by hand, tuned, 2 processes", "peer"),
    "by_hand_x2": ("psycopg by hand, 2 processes", "peer"),
    "by_hand_x1": ("psycopg by hand, 1 process", "peer"),
    "single_message": ("one message per transaction", "peer"),
    "pgqueuer": ("pgqueuer", "peer"),
}
TRANSPORT: Drawn = {
    "copy": ("limit: COPY in", "limit"),
    "send": ("send", "ours"),
    "move": ("limit: move inside the database", "limit"),
    "claim": ("claim", "ours"),
    "complete": ("complete, with results", "ours"),
    "stream": ("read a claim as Arrow", "ours"),
    "sqlite_send": ("SQLite: send", "ours"),
    "sqlite_claim": ("SQLite: claim", "ours"),
    "sqlite_complete": ("SQLite: complete", "ours"),
}
SCALE: Drawn = {f"receivers_{count}": (f"{count} receiving processes", "ours") for count in (1, 2, 4, 8)} | {
    "receive_fresh": ("a fresh table", "ours"),
    "receive_after_1m": ("after 1,000,000 messages", "ours"),
}
LATENCY: Drawn = {
    "lingering": ("into a run that lingers", "ours"),
    "warm_launch": ("with the launch of a run", "ours"),
    "cold": ("the first of all, no Spark yet", "ours"),
}

_RATES = "messages a second, median; longer is better"
_CHARTS: dict[str, tuple[str, str, str, Drawn, int]] = {
    "transport": ("The transport beside the database's limits", _RATES, "messages_per_s", TRANSPORT, 0),
    "example": ("The worked example", _RATES, "messages_per_s", PIPELINE, 0),
    "pipeline": ("The worked example", _RATES, "messages_per_s", PIPELINE, 0),
    "all": ("The worked example", _RATES, "messages_per_s", PIPELINE, 0),
    "latency": (
        "From send to result",
        "seconds, median; shorter is better",
        "latency_s",
        LATENCY,
        2,
    ),
    "scale": ("Receiving: claim and complete", _RATES, "messages_per_s", SCALE, 0),
}


def chart_of(part: str, report: Report) -> str:
    """The picture of a part: a bar for each figure that was measured and has a name there."""
    title, note, group, drawn, digits = _CHARTS[part]
    figures = report.figures.get(group, {})
    bars = [Bar(label, figures[name].median, kind) for name, (label, kind) in drawn.items() if name in figures]
    return draw(title, note, bars, digits)
