"""Which ratios of the ways are reported."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from queue_pipeline_tests.benchmarks.report import paired

Speeds = Mapping[str, Sequence[float]]

PAIRS = {
    "example_vs_by_hand_x2": ("example", "by_hand_x2"),
    "example_vs_by_hand_x1": ("example", "by_hand_x1"),
    "example_vs_by_hand_tuned_x2": ("example", "by_hand_tuned_x2"),
    "example_bad_vs_clean": ("example", "example_clean"),
    "example_vs_single_message": ("example", "single_message"),
    "example_vs_pgqueuer": ("example", "pgqueuer"),
    "example_vs_move": ("example", "move"),
    "executor_vs_jdbc": ("executors", "jdbc"),
    "executor_vs_example": ("executors", "example"),
    "single_message_vs_move": ("single_message", "move"),
    "by_hand_x2_vs_move": ("by_hand_x2", "move"),
}
"""Taken within each round, of ways that were measured in the same rounds."""
YOUNG = "example_young_vs_warm"


def ratios(speed: Speeds) -> dict[str, list[float]]:
    """Every ratio of which both ways were measured."""
    return {
        name: paired(speed[one], speed[other])
        for name, (one, other) in PAIRS.items()
        if one in speed and other in speed
    }


def young_ratio(young: Sequence[float], warm: Sequence[float]) -> list[float]:
    """A young Spark to the median of the warm one: the young ones ran before the rounds and have no partner there."""
    return [one / statistics.median(warm) for one in young]
