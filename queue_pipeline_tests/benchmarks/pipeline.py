"""The pipeline part: the worked example by all ways in turn."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from queue_pipeline.processing.figures import RunFigures
from queue_pipeline_tests.benchmarks import ours
from queue_pipeline_tests.benchmarks.plan import Plan
from queue_pipeline_tests.benchmarks.ratios import ratios
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.rounds import Results
from queue_pipeline_tests.benchmarks.ways import BY_HAND_BATCH
from queue_pipeline_tests.benchmarks.workload import BAD, make_messages, message_size

DATABASE_OPTIONS: dict[str, Any] = {"endpoint": "orders"}
PROFILED = ("example", "by_hand_x2")
"""Ways whose processor time is reported by kind of process."""


def tell(
    results: Results, figures: Sequence[RunFigures], profiled: Sequence[str], plan: Plan, report: Report, *, part: str
) -> None:
    """Report what the rounds measured."""
    speed = {name: [one.speed for one in measured] for name, measured in results.items()}
    for name, values in ratios(speed).items():
        report.add("ratios", name, values)
    for name, values in speed.items():
        report.add("messages_per_s", name, values)
    for name in profiled:
        for kind in results[name][0].processor:
            used = [one.processor[kind] / one.count * 1e6 for one in results[name]]
            report.add("processor_us_per_message", f"{name}_{kind}", used)
        used = [sum(one.processor.values()) / one.count * 1e6 for one in results[name]]
        report.add("processor_us_per_message", f"{name}_all", used)
    for name, measured in results.items():
        report.add("wal_bytes", name, [one.wal_bytes / one.count for one in measured])
    report.wal = statistics.median(one.wal_bytes / one.count for one in results["example"])
    for step in ("read", "transform", "complete"):
        spent = [getattr(ran, f"{step}_seconds") / plan.rows * 1e6 for ran in figures]
        report.add("microseconds_per_message", f"example_{step}", spent)
    size = message_size(make_messages(1_000))
    counts = {name: measured[0].count for name, measured in results.items()}
    report.settings[part] = {
        "rows": plan.rows,
        "rounds": plan.pipeline_rounds,
        "warm-up messages": plan.rows * plan.pipeline_warm_ups,
        "bad": BAD,
        "header_bytes": size.header_bytes,
        "body_bytes": size.body_bytes,
        "batch": ours.example().batch_messages,
        "by_hand batch": BY_HAND_BATCH,
        "move batch": plan.batch,
        **{f"rows of {name}": count for name, count in counts.items() if count != plan.rows},
    }
