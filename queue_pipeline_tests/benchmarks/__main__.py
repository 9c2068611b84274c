"""`scripts/bench`: runs the parts that were asked for and prints what they found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click

from queue_pipeline_tests.benchmarks import latency, pipeline, scale, transport
from queue_pipeline_tests.benchmarks.plan import FULL_ROWS, QUICK_ROWS, Plan, make_plan
from queue_pipeline_tests.benchmarks.report import Report

PARTS: dict[str, Callable[[Plan, Report], None]] = {
    "transport": transport.run,
    "pipeline": pipeline.run,
    "latency": latency.run,
    "scale": scale.run,
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("part", type=click.Choice([*PARTS, "all"]), default="all")
@click.option("--quick", is_flag=True, help="Fewer messages and rounds: about a minute a part.")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    help=f"How many messages to move ({FULL_ROWS:,}; {QUICK_ROWS:,} with --quick).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write Markdown and JSON to this folder.",
)
def main(part: str, quick: bool, rows: int | None, as_json: bool, out: Path | None) -> None:
    """Measure speed and memory against the database's own limits.

    Every ratio is of one run on one machine. A missed target is told, and is no failure of the command.
    """
    report = Report(settings={"quick": quick})
    plan = make_plan(quick=quick, rows=rows)
    for name in PARTS if part == "all" else [part]:
        PARTS[name](plan, report)
    document = json.dumps(report.as_json(), indent=2)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{part}.json").write_text(document + "\n", encoding="utf-8")
        (out / f"{part}.md").write_text(report.as_markdown(), encoding="utf-8")
    click.echo(document if as_json else report.as_text())


if __name__ == "__main__":
    main(prog_name="scripts/bench")
