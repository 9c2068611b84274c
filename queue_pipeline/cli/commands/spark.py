"""`spark`: the local server that keeps Spark warm between runs."""

from __future__ import annotations

import os
import time
from dataclasses import asdict

import click

from queue_pipeline.cli.output import duration, size_of, write_json, write_lines
from queue_pipeline.cli.session import Session, pass_session, shared_options
from queue_pipeline.processing.spark import warm_server as warm_spark
from queue_pipeline.processing.spark.settings import DEFAULT, ENVIRONMENT_VARIABLE, spark_config
from queue_pipeline.transport.errors import ConfigurationError


@click.group(invoke_without_command=True)
@shared_options
@click.pass_context
def spark(context: click.Context) -> None:
    """Control the local Spark server that stays warm between runs.

    It belongs to this project and its setting of Spark, and is used where QUEUE_PIPELINE_SPARK begins with warm:, as
    it does by default. The first run that needs it starts it; it runs until it is stopped here.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


@spark.command()
@shared_options
@pass_session
def status(session: Session) -> None:
    """Show whether the server runs: process, address, memory, since when."""
    found, others = warm_spark.find(), warm_spark.find_others()
    if session.json:
        server = None if found is None else asdict(found)
        write_json({"setting": _setting(), "server": server, "others": [asdict(other) for other in others]})
        return
    if found is None:
        write_lines(f"no Spark server is kept warm for this project; {ENVIRONMENT_VARIABLE} is {_setting()}")
    else:
        write_lines(_sentence(found))
    for other in others:
        write_lines(f"another one, for {other.project}: process {other.pid}; end it with: {other.how_to_end}")


@spark.command()
@shared_options
@pass_session
def start(session: Session) -> None:
    """Start the server and run a first query, so that no run has to wait for it."""
    if not _setting().startswith("warm:"):
        raise ConfigurationError(
            f"{ENVIRONMENT_VARIABLE} is {_setting()}, which keeps no server of its own; use for example {DEFAULT}"
        )
    # Slow to load, and of no use to any other command.
    from queue_pipeline.processing.spark.session import start_session

    began = time.monotonic()
    client = start_session(spark_config())
    try:
        client.range(1).collect()
    finally:
        # Ends the session of this client; the server stays.
        client.stop()
    seconds = time.monotonic() - began
    found = warm_spark.find()
    if session.json:
        write_json({"seconds": round(seconds, 3), "server": None if found is None else asdict(found)})
    elif found is not None:
        write_lines(f"{_sentence(found)}; ready in {duration(seconds)}")


@spark.command()
@shared_options
@pass_session
def stop(session: Session) -> None:
    """Stop the server; runs that use it fail, and their messages are processed again."""
    ended = warm_spark.end()
    if session.json:
        write_json({"stopped": None if ended is None else asdict(ended)})
    else:
        write_lines("no Spark server was running" if ended is None else f"stopped Spark, process {ended.pid}")


def _setting() -> str:
    return os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT


def _sentence(found: warm_spark.WarmSpark) -> str:
    return (
        f"Spark {found.version} is warm at {found.address}: process {found.pid}, {size_of(found.memory_bytes)}, "
        f"for {duration(found.seconds)}"
    )
