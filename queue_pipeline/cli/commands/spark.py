"""`spark`: the local server that keeps Spark warm between runs."""

from __future__ import annotations

import os
import time
from dataclasses import asdict

import click

from queue_pipeline.cli.output import answer, duration, size_of
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.session import Session, shared_options, with_session
from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.spark import warm_server as warm_spark
from queue_pipeline.processing.spark.settings import DEFAULT, ENVIRONMENT_VARIABLE, spark_config, without_parameters


@click.group()
@shared_options
def spark() -> None:
    """Control the local Spark server that stays warm between runs.

    It belongs to this project and its setting of Spark, and is used if QUEUE_PIPELINE_SPARK begins with warm:, as it
    does by default. The first run that needs it starts it; it runs until `spark stop`.
    """


@spark.command()
@with_session
def status(session: Session) -> None:
    """Show whether the server runs: process, address, memory, since when."""
    found, others = warm_spark.find(), warm_spark.find_others()
    none = f"no Spark server is kept warm for this project; {ENVIRONMENT_VARIABLE} is {_setting()}"
    lines = [none if found is None else _sentence(found)]
    lines += [f"another one, for {one.project}: process {one.pid}; end it with: {one.how_to_end}" for one in others]
    server = None if found is None else asdict(found)
    answer(session, {"setting": _setting(), "server": server, "others": [asdict(one) for one in others]}, *lines)


@spark.command()
@with_session
def start(session: Session) -> None:
    """Start the server and run a first query, so that no run has to wait for it."""
    if not _setting().startswith("warm:"):
        raise ConfigurationError(
            f"{ENVIRONMENT_VARIABLE} is {_setting()}, which keeps no server of its own; use for example {DEFAULT}"
        )
    # Slow to load, and of no use to any other command.
    from queue_pipeline.processing.spark.session import start_session

    began = time.monotonic()
    with progress(session, "starting Spark"):
        client = start_session(spark_config())
        try:
            client.range(1).collect()
        finally:
            # Ends the session of this client; the server stays.
            client.stop()
    seconds = time.monotonic() - began
    found = warm_spark.find()
    lines = [] if found is None else [f"{_sentence(found)}; ready in {duration(seconds)}"]
    answer(session, {"seconds": round(seconds, 3), "server": None if found is None else asdict(found)}, *lines)


@spark.command()
@with_session
def stop(session: Session) -> None:
    """Stop the server; runs that use it fail, and their messages are processed again."""
    with progress(session, "stopping Spark"):
        ended = warm_spark.end()
    line = "no Spark server was running" if ended is None else f"stopped Spark, process {ended.pid}"
    answer(session, {"stopped": None if ended is None else asdict(ended)}, line)


def _setting() -> str:
    return without_parameters(os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT)


def _sentence(found: warm_spark.WarmSpark) -> str:
    return (
        f"Spark {found.version} is warm at {found.address}: process {found.pid}, {size_of(found.memory_bytes)}, "
        f"for {duration(found.seconds)}"
    )
