"""`pause`, `resume` and `pauses`: stopping a pipeline without stopping its processes."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import asdict

import click

from queue_pipeline.cli.output import duration, write_json, write_lines, write_table
from queue_pipeline.cli.parameters import Text, pipeline_argument
from queue_pipeline.cli.session import Session, pass_session, shared_options


@click.command()
@pipeline_argument
@click.option("--reason", type=Text(), metavar="TEXT", default=None, help="The reason, shown to other people.")
@click.option("--by", type=Text(), metavar="TEXT", default=None, help="Who paused it. Default: your user and machine.")
@shared_options
@pass_session
def pause(session: Session, name: str, reason: str | None, by: str | None) -> None:
    """Pause the pipeline NAME: it begins no further batch until it is resumed.

    Batches in work go on to their end; messages wait in their queues. A pipeline that is paused already keeps
    the reason that was given first.
    """
    with session.transport() as transport:
        changed = transport.pauses.pause(name, by or whoami(), reason or "")
        found = transport.pauses.list().get(name)
    if session.json:
        write_json({"name": name, "changed": changed, "pause": None if found is None else asdict(found)})
    elif changed or found is None:
        write_lines(f"paused {name}")
    else:
        since = duration(found.since_seconds)
        write_lines(f"{name} is paused already, for {since}, by {found.by}{_because(found.reason)}")


@click.command()
@pipeline_argument
@shared_options
@pass_session
def resume(session: Session, name: str) -> None:
    """Resume the paused pipeline NAME."""
    with session.transport() as transport:
        changed = transport.pauses.resume(name)
    if session.json:
        write_json({"name": name, "changed": changed})
    else:
        write_lines(f"resumed {name}" if changed else f"{name} is not paused")


@click.command()
@shared_options
@pass_session
def pauses(session: Session) -> None:
    """List the pipelines that are paused."""
    with session.transport() as transport:
        found = list(transport.pauses.list().values())
    if session.json:
        write_json({"pauses": [asdict(each) for each in found]})
    elif found:
        rows = [(each.name, duration(each.since_seconds), each.by, each.reason or None) for each in found]
        write_table(("name", "for", "by", "reason"), rows, figures=("for",))
    else:
        write_lines("nothing is paused")


def whoami() -> str:
    """The user at this machine; a container may run under a number that has no name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
