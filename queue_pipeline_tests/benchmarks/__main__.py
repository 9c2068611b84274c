"""`scripts/bench`: runs the parts that were asked for, writes what they found, and prints it."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path

import click

from queue_pipeline_tests.benchmarks.plan import EXAMPLE_ROWS, FULL_ROWS, QUICK_ROWS, Plan, make_plan, say
from queue_pipeline_tests.benchmarks.rendering import as_text
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.written import DOCUMENTS, write

PARTS = ("transport", "latency", "pipeline", "scale")
"""Of `all`, in the order in which they run: latency begins without any Spark."""
TUNING = ("example", "sessions")
"""For people who tune: some ways of the pipeline part, the cost of a session; no files."""
BUSY = 0.5
"""A load above which figures are doubtful."""
YOUNG = (
    "Spark's JVM is young in this quick run: what uses Spark reaches a part of its speed, and the ratios of the worked "
    "example are lower than in a full run"
)
EXTRA = ("psycopg", "asyncpg", "pgqueuer")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("part", type=click.Choice([*PARTS, *TUNING, "all"]), default="all")
@click.option("--quick", is_flag=True, help="Fewer messages and rounds: about five minutes for all parts.")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    help=f"How many messages to move ({FULL_ROWS:,}; {EXAMPLE_ROWS:,} of `example`; {QUICK_ROWS:,} with --quick).",
)
@click.option("--rounds", type=click.IntRange(min=1), help="How often the worked example and its peers run in turns.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write Markdown, JSON and a chart to this folder, not docs/benchmarks; parts for tuning write nowhere else.",
)
def main(part: str, quick: bool, rows: int | None, rounds: int | None, as_json: bool, out: Path | None) -> None:
    """Measure speed and memory against the database's own limits and what a team would use instead.

    Every ratio is of one run on one machine. A missed target is reported, and is no failure of the command.
    """
    check_extra()
    # As by Ctrl-C, so that all that was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    plan = make_plan(part, quick=quick, rows=rows, rounds=rounds)
    report = run_parts(PARTS if part == "all" else (part,), plan)
    if out is not None or part not in TUNING:
        write(report, part, out or DOCUMENTS, quick=quick)
    click.echo(json.dumps(report.as_json(), indent=2) if as_json else as_text(report))


def check_extra() -> None:
    """Say what is missing before anything is started."""
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        raise click.ClickException(f"{', '.join(missing)} not installed; run scripts/bootstrap bench")


def run_parts(parts: tuple[str, ...], plan: Plan) -> Report:
    """Run parts one after the other on one server; how long each took is among the settings."""
    # Imported late: they need the extra.
    workbench = importlib.import_module("queue_pipeline_tests.benchmarks.workbench")
    load = round(os.getloadavg()[0], 1)
    if load > BUSY:
        say(f"the machine is busy (load {load}): what shares it with others is slower, and Spark most of all")
    report = Report(settings={"measured": time.strftime("%Y-%m-%d"), "quick": plan.quick, "load at start": load})
    if plan.quick:
        report.notes.append(YOUNG)
    took: dict[str, float] = {}
    with workbench.Workbench() as bench:
        for name in parts:
            say(f"part {name}")
            start = time.perf_counter()
            importlib.import_module(f"queue_pipeline_tests.benchmarks.{name}").run(plan, report, bench)
            took[name] = round(time.perf_counter() - start, 1)
            say(f"part {name} took {took[name]:.0f} s")
    report.settings["took_s"] = took
    return report


if __name__ == "__main__":
    main(prog_name="scripts/bench")
