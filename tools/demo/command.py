"""The command line of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from queue_pipeline.cli.parameters import POSITIVE
from tools import command_line
from tools.demo.story import Story, Wishes
from tools.demo.workplace import Workplace, project_folder


@click.command()
@click.option("--once", is_flag=True)
@click.option("--messages", type=POSITIVE, default=2_000)
@click.option("--trickle", is_flag=True)
@click.option("--fresh", is_flag=True)
@click.option("--keep-spark", is_flag=True)
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=None)
def command(once: bool, messages: int, trickle: bool, fresh: bool, keep_spark: bool, folder: Path | None) -> int:
    """Run the worked example; scripts/demo --help says more."""
    if once and trickle:
        raise click.UsageError("--trickle keeps orders coming while the UI runs; leave it out with --once")
    place = Workplace((folder or project_folder() / ".queue_pipeline" / "demo").resolve())
    with place.occupied():
        if fresh:
            place.end_spark()
            place.clear()
        place.prepare()
        story = Story(place, Wishes(messages, once, trickle, keep_spark))
        try:
            return 0 if story.run() else 1
        finally:
            command_line.ignore_signals()
            click.echo("demo: ending" if once else "demo: ending Dagster and Spark")
            story.end()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    return command_line.run(command, "demo", arguments)
