"""The command line of the cluster."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from queue_pipeline.cli.output import write_lines
from queue_pipeline.cli.parameters import POSITIVE
from queue_pipeline.processing.spark.settings import ENVIRONMENT_VARIABLE
from queue_pipeline.transport.texts import count_of
from tools import command_line
from tools.cluster.cluster_folder import ClusterFolder
from tools.cluster.ports import Ports
from tools.cluster.programs import TOKEN_VARIABLE
from tools.cluster.standalone import StandaloneCluster
from tools.cluster.state import ClusterState
from tools.cluster.status import status_of
from tools.processes import Processes

MASTER_PORT, CONNECT_PORT, UI_PORT = 7077, 15_002, 8080

port_option = click.IntRange(0, 65_535)
folder_option = click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=None)


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Start, stop or check a Spark cluster on this machine; scripts/cluster --help says more."""
    if context.invoked_subcommand is None:
        raise click.UsageError("say what to do: start, stop or status")


@command.command()
@click.option("--workers", type=POSITIVE, default=2)
@click.option("--cores", type=POSITIVE, default=1)
@click.option("--memory", default="2g")
@click.option("--no-connect", is_flag=True)
@click.option("--master-port", type=port_option, default=MASTER_PORT)
@click.option("--connect-port", type=port_option, default=CONNECT_PORT)
@folder_option
def start(
    workers: int, cores: int, memory: str, no_connect: bool, master_port: int, connect_port: int, folder: Path | None
) -> int:
    """Start it; returns when it is ready."""
    place = _place(folder)
    if (state := place.read()) is not None and place.alive():
        write_lines(f"cluster: it runs already, in {place.path}")
        _write_settings(place, state)
        return 0 if status_of(place).whole else 1
    began = time.monotonic()
    cluster = StandaloneCluster(
        place.path,
        workers=workers,
        cores=cores,
        memory=memory,
        connect=not no_connect,
        ports=Ports(master_port, connect_port, UI_PORT),
    )
    write_lines("cluster: starting Spark: ten seconds, longer on a busy machine")
    sys.stdout.flush()
    cluster.start()
    write_lines(
        f"cluster: ready after {time.monotonic() - began:.0f} s: {count_of(workers, 'worker')}, each with "
        f"{count_of(cores, 'core')} and {memory}"
    )
    _write_settings(place, cluster.state)
    return 0


@command.command()
@folder_option
def stop(folder: Path | None) -> int:
    """End all of it."""
    place = _place(folder)
    if (state := place.read()) is None:
        write_lines(f"cluster: none runs in {place.path}")
        return 0
    with place.occupied():
        count = len(place.alive())
        place.end(Processes(place.path, {}, state.mark))
    write_lines(f"cluster: stopped, {count} processes" if count else "cluster: it was gone already")
    return 0


@command.command()
@folder_option
def status(folder: Path | None) -> int:
    """Show which programs run; the exit code is 0 if all of them do."""
    place = _place(folder)
    found = status_of(place)
    write_lines(*(f"cluster: {line}" for line in found.lines))
    if found.whole and (state := place.read()) is not None:
        _write_settings(place, state)
    return 0 if found.whole else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    return command_line.run(command, "cluster", arguments)


def _place(folder: Path | None) -> ClusterFolder:
    return ClusterFolder((folder or Path(".queue_pipeline") / "cluster").resolve())


def _write_settings(place: ClusterFolder, state: ClusterState) -> None:
    conf, token = shlex.quote(str(place.conf)), f"$(cat {shlex.quote(str(place.token))})"
    write_lines(
        "    # the driver in each run's process:",
        f"    export {ENVIRONMENT_VARIABLE}={state.master_url} SPARK_CONF_DIR={conf}",
    )
    if state.remote_url is not None:
        write_lines(
            "    # one driver for all, by Spark Connect:",
            f'    export {ENVIRONMENT_VARIABLE}={state.remote_url} {TOKEN_VARIABLE}="{token}"',
        )
    write_lines(f"    {state.ui}      # its page")
    sys.stdout.flush()
