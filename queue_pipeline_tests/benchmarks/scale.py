"""The scale part: backlogs, bodies and receivers that grow, and a queue after a million messages."""

from __future__ import annotations

from queue_pipeline_tests.benchmarks import ours
from queue_pipeline_tests.benchmarks.bloat import tell_bloat
from queue_pipeline_tests.benchmarks.growth import tell_bodies, tell_executors, tell_growth
from queue_pipeline_tests.benchmarks.looks import tell_audits, tell_peeks, tell_purges
from queue_pipeline_tests.benchmarks.orders import Orders
from queue_pipeline_tests.benchmarks.plan import Plan, say
from queue_pipeline_tests.benchmarks.receivers import tell_receivers
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.workbench import Workbench

LOOKED_AT = ("1k", "100k", "1m")


def run(plan: Plan, report: Report, bench: Workbench) -> None:
    """Measure on PostgreSQL; only large bodies and the executors' backlogs need Spark."""
    report.settings["scale"] = {"rounds": plan.rounds, "worked_off": plan.worked_off, "rows": plan.receiver_rows}
    tell_growth(bench.backlogs, plan, report)
    say("peek, purge and audit")
    tell_peeks(bench.backlogs, LOOKED_AT, plan, report)
    tell_purges(bench.backlogs, LOOKED_AT, plan, report)
    tell_audits(bench.backlogs, LOOKED_AT, report)
    with bench.database("scale", report, **ours.TRANSPORT) as (url, transport, connection):
        tell_receivers(url, transport, connection, plan, report)
        orders = Orders(transport, connection)
        tell_bodies(orders, transport, bench.spark, plan, report)
        tell_executors(orders, transport, bench.spark, plan, report)
    if plan.bloat_rounds:
        tell_bloat(plan, report)
