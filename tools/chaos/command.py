"""The command line of chaos."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Sequence

import click

from queue_pipeline.cli.parameters import POSITIVE
from tools import command_line
from tools.chaos.contest import Options, run

DEFAULT_SECONDS = 60.0


@click.command()
@click.option("--seconds", type=click.FloatRange(min=1), default=None)
@click.option("--messages", type=POSITIVE, default=None)
@click.option("--seed", type=click.IntRange(min=0), default=None)
@click.option("--database", default=None)
@click.option("--json", "as_json", is_flag=True)
def command(seconds: float | None, messages: int | None, seed: int | None, database: str | None, as_json: bool) -> int:
    """Run competing workers under faults, and account for every message; scripts/chaos --help says more."""
    if seconds is None and messages is None:
        seconds = DEFAULT_SECONDS
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    print(f"chaos: seed {seed}", file=sys.stderr, flush=True)
    report = run(Options(seed, seconds, messages, database, progress()))
    print(json.dumps(report.as_json(), indent=2) if as_json else "\n".join(report.lines()), flush=True)
    return 0 if report.is_right else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    chosen = command
    if "--dagster" in (sys.argv[1:] if arguments is None else arguments):
        from tools.chaos.dagster.command import command as chosen
    return command_line.run(chosen, "chaos", arguments, failed=2)


def progress() -> Callable[[str], None]:
    """A line on a terminal that is overwritten; nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda line: None
    return lambda line: print(f"\r\033[Kchaos: {line}", end="", file=sys.stderr, flush=True)
