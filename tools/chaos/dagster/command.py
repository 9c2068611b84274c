"""The command line of `scripts/chaos --dagster`."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import click

from tools.chaos.command import progress
from tools.chaos.dagster.contest import Options, run
from tools.chaos.dagster.faults import KINDS
from tools.chaos.dagster.plan import HARMFUL

DEFAULT_SECONDS = 300.0
DEFAULT_LONGEST_STANDSTILL = 120.0


def _kinds(context: click.Context, parameter: click.Parameter, given: str) -> list[str]:
    kinds = [word.strip() for word in given.split(",") if word.strip()]
    if unknown := sorted({*kinds} - {*HARMFUL, *KINDS}):
        raise click.BadParameter(f"{', '.join(unknown)} is none of {', '.join((*HARMFUL, *KINDS))}")
    return kinds


@click.command()
@click.option("--dagster", is_flag=True)
@click.option("--seconds", type=click.FloatRange(min=1), default=DEFAULT_SECONDS)
@click.option("--seed", type=click.IntRange(min=0), default=None)
@click.option("--longest-standstill", type=click.FloatRange(min=1), default=DEFAULT_LONGEST_STANDSTILL)
@click.option("--without", default="", callback=_kinds)
@click.option("--logs", type=click.Path(file_okay=False, path_type=Path), default=None)
@click.option("--json", "as_json", is_flag=True)
def command(
    dagster: bool,
    seconds: float,
    seed: int | None,
    longest_standstill: float,
    without: list[str],
    logs: Path | None,
    as_json: bool,
) -> int:
    """Run a deployment under faults, and account for every message; scripts/chaos --help says more."""
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    print(f"chaos: seed {seed}", file=sys.stderr, flush=True)
    report = run(Options(seed, seconds, longest_standstill, without, logs, progress()))
    print(json.dumps(report.as_json(), indent=2) if as_json else "\n".join(report.lines()), flush=True)
    return 0 if report.is_right else 1
