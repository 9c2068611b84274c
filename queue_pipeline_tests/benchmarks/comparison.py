"""Ours against everybody: which ratios are told, and who is the best of the others."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from queue_pipeline_tests.benchmarks.report import paired

PEERS = (
    "psycopg_1000_x1",
    "psycopg_1000_x2",
    "psycopg_10000_x1",
    "psycopg_10000_x2",
    "single_message_x1",
    "single_message_x4",
    "pgqueuer",
    "procrastinate",
)
"""Those that do the same work: plain JDBC takes nothing out of the queue, and the limits transform nothing."""


HAND_WRITTEN = ("psycopg_1000_x1", "psycopg_10000_x1")
"""One process of the best that can be written by hand."""


def fastest(speed: Mapping[str, Sequence[float]], names: Sequence[str]) -> str:
    """Whoever of these was the fastest, by the median."""
    return max((name for name in names if name in speed), key=lambda name: statistics.median(speed[name]))


def best_peer(speed: Mapping[str, Sequence[float]]) -> str:
    """Whoever of all was the fastest, in however many processes."""
    return fastest(speed, PEERS)


def ratios(speed: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Every ratio of the pipeline part, paired within rounds."""
    best = best_peer(speed)
    pairs = {
        "pipeline_vs_move": ("pipeline", "move"),
        "pipeline_vs_single_message": ("pipeline", "single_message_x1"),
        "pipeline_vs_single_message_x4": ("pipeline", "single_message_x4"),
        "pipeline_vs_pgqueuer": ("pipeline", "pgqueuer"),
        "pipeline_vs_procrastinate": ("pipeline", "procrastinate"),
        "pipeline_vs_best_peer": ("pipeline", best),
        "pipeline_vs_hand_written": ("pipeline", fastest(speed, HAND_WRITTEN)),
        "best_peer_vs_move": (best, "move"),
        "executor_vs_jdbc": ("executors", "jdbc"),
        "executor_vs_pipeline": ("executors", "pipeline"),
    }
    return {name: paired(speed[one], speed[other]) for name, (one, other) in pairs.items()}
