"""The pipeline part: the worked example by all ways in turn."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from queue_pipeline.processing.run.run_metrics import RunFigures
from queue_pipeline_tests.benchmarks import ours
from queue_pipeline_tests.benchmarks.plan import Plan
from queue_pipeline_tests.benchmarks.ratios import YOUNG, ratios, young_ratio
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.rounds import Results, Rounds
from queue_pipeline_tests.benchmarks.ways import BY_HAND_BATCH, PGQUEUER, RECEIVES_IN_FLIGHT, Ways
from queue_pipeline_tests.benchmarks.workbench import Workbench
from queue_pipeline_tests.benchmarks.workload import BAD, make_messages, message_size

PROFILED = ("example", "by_hand_x2")
"""Ways whose processor time is reported by kind of process."""


def run(plan: Plan, report: Report, bench: Workbench) -> None:
    """Measure on PostgreSQL: first by Sparks that were just started, then with a warm one."""
    with bench.database("pipeline", report, **ours.TRANSPORT) as (url, transport, connection):
        ways = Ways(url, transport, connection, bench, plan)
        rounds = Rounds(connection, bench.processes)
        young = []
        for _ in range(plan.young_rounds):
            with ways.example_young() as way:
                young += rounds.run([way], 1)[way.name]
        with ways.by_hand() as by_hand, ways.single_message() as single, ways.pgqueuer() as pgqueuer:
            rounds.warm_up([ways.example()], plan.pipeline_warm_ups)
            rounds.warm_up([ways.executors(), ways.jdbc()], plan.spark_warm_ups)
            ways.figures.clear()
            ours_and_limit = [ways.move(), ways.example(), ways.example_clean(), ways.executors()]
            results = rounds.run([*ours_and_limit, ways.jdbc(), *by_hand, single, pgqueuer], plan.pipeline_rounds)
    tell(results, ways.figures, plan, report, part="pipeline")
    first = [one.speed for one in young]
    report.add("messages_per_s", "example_young", first)
    report.add("ratios", YOUNG, young_ratio(first, [one.speed for one in results["example"]]))
    report.settings["pipeline"] |= {
        "rows of example_young": plan.young_rows,
        "starts of Spark for example_young": plan.young_rounds,
        "executor batch": ours.by_executors(plan.rows).batch_messages,
        "single_message processes": RECEIVES_IN_FLIGHT,
        **{f"pgqueuer {name}": value for name, value in PGQUEUER.items()},
    }


def tell(results: Results, figures: Sequence[RunFigures], plan: Plan, report: Report, *, part: str) -> None:
    """Report what the rounds measured."""
    speed = {name: [one.speed for one in measured] for name, measured in results.items()}
    for name, values in ratios(speed).items():
        report.add("ratios", name, values)
    for name, values in speed.items():
        report.add("messages_per_s", name, values)
    for name in PROFILED:
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
