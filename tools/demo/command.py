"""The command line of the demo, and what its signals mean."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from queue_pipeline.cli.parameters import POSITIVE
from queue_pipeline.transport.errors import QueuePipelineError
from tools.demo.story import Story, Wishes
from tools.demo.workplace import Workplace, project_folder

INTERRUPTED = 130


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
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            # A second Ctrl-C must not leave processes running.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            click.echo("demo: ending Dagster and Spark" if not once else "demo: ending", nl=True)
            story.end()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    # A shell starts background jobs of a script with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        code = command.main(arguments, prog_name="scripts/demo", standalone_mode=False)
    except click.ClickException as error:
        print(f"demo: {error.format_message()}; see scripts/demo --help", file=sys.stderr)
        return error.exit_code
    except QueuePipelineError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
