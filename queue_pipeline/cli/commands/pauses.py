"""`pause`, `resume` and `pauses`: stopping a pipeline without stopping its processes."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import asdict

import click

from queue_pipeline.cli.output import answer, answer_table, duration
from queue_pipeline.cli.parameters import Text, pipeline_argument
from queue_pipeline.cli.session import Session, with_session


@click.command()
@pipeline_argument
@click.option("--reason", type=Text(), metavar="TEXT", help="The reason, shown to other people.")
@click.option("--by", type=Text(), metavar="TEXT", help="Who paused it. Default: your user and machine.")
@with_session
def pause(session: Session, name: str, reason: str | None, by: str | None) -> None:
    """Pause the pipeline NAME: it begins no further batch until it is resumed.

    Batches in work go on to their end; messages wait in their queues. A pipeline that is paused already keeps
    the reason that was given first.
    """
    with session.transport() as transport:
        changed = transport.pauses.pause(name, by or whoami(), reason or "")
        found = transport.pauses.list().get(name)
    line = f"paused {name}"
    if not changed and found is not None:
        because = f": {found.reason}" if found.reason else ""
        line = f"{name} is paused already, for {duration(found.since_seconds)}, by {found.by}{because}"
    document = {"name": name, "changed": changed, "pause": None if found is None else asdict(found)}
    answer(session, document, line)


@click.command()
@pipeline_argument
@with_session
def resume(session: Session, name: str) -> None:
    """Resume the paused pipeline NAME."""
    with session.transport() as transport:
        changed = transport.pauses.resume(name)
    answer(session, {"name": name, "changed": changed}, f"resumed {name}" if changed else f"{name} is not paused")


@click.command()
@with_session
def pauses(session: Session) -> None:
    """List the pipelines that are paused."""
    with session.transport() as transport:
        found = list(transport.pauses.list().values())
    rows = [(one.name, duration(one.since_seconds), one.by, one.reason or None) for one in found]
    document = {"pauses": [asdict(one) for one in found]}
    answer_table(session, document, ("name", "for", "by", "reason"), rows, ("for",), nothing="nothing is paused")


def whoami() -> str:
    """The user at this machine; in a container the user's number may have no name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
