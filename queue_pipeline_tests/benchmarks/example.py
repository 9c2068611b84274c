"""The part for people who tune: the worked example beside the same by hand and the in-database move, nothing else."""

from __future__ import annotations

from queue_pipeline_tests.benchmarks import ours
from queue_pipeline_tests.benchmarks.pipeline import tell
from queue_pipeline_tests.benchmarks.plan import Plan
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.rounds import Rounds
from queue_pipeline_tests.benchmarks.ways import Ways
from queue_pipeline_tests.benchmarks.workbench import Workbench


def run(plan: Plan, report: Report, bench: Workbench) -> None:
    """Measure on PostgreSQL with a warm Spark."""
    with bench.database("example", report, **ours.TRANSPORT) as (url, transport, connection):
        ways = Ways(url, transport, connection, bench, plan)
        rounds = Rounds(connection, bench.processes)
        with ways.by_hand() as by_hand:
            rounds.warm_up([ways.example()], plan.pipeline_warm_ups)
            ways.figures.clear()
            results = rounds.run([ways.move(), ways.example(), ways.example_clean(), *by_hand], plan.pipeline_rounds)
    tell(results, ways.figures, plan, report, part="example")
