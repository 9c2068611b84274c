"""`purge`, `move-due` and `audit-indexes`: maintenance of queues."""

from __future__ import annotations

import contextlib
import json
import time

import click

from queue_pipeline.cli.output import answer, answer_table, flush, write_heading, write_lines
from queue_pipeline.cli.parameters import any_queues_argument, number, queues_argument
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.session import Session, with_session
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.due_mover import DueMover
from queue_pipeline.transport.texts import count_of
from queue_pipeline.transport.transport import DEFAULT_MOVE_BATCH, DEFAULT_PURGE_BATCH, QueueTransport

FOUND = 1


@click.command()
@queues_argument
@number("--batch", default=DEFAULT_PURGE_BATCH, help="Messages per transaction.")
@with_session
def purge(session: Session, queues: tuple[str, ...], batch: int) -> None:
    """Delete the expired messages of queues; all others stay."""
    with session.transport() as transport:
        tables = [transport.resolve(queue) for queue in queues]
        counts = []
        for table in tables:
            with progress(session, f"purging {table}") as on_progress:
                counts.append((table.canonical, transport.purge(table, batch, on_progress)))
    _write_counts(session, "deleted", counts)


@click.command()
@queues_argument
@number("--batch", default=DEFAULT_MOVE_BATCH, help="Messages per transaction.")
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C, moving messages as they become due.")
@with_session
def move_due(session: Session, queues: tuple[str, ...], batch: int, watch: bool) -> None:
    """Move delayed messages that are due to their destinations.

    Use it for queues without a running endpoint or pipeline; these move their messages themselves. With --watch the
    command prints a line for each move, with --json a JSON document.
    """
    with session.transport() as transport:
        tables = [transport.resolve(queue) for queue in queues]
        counts = [(table.canonical, _move_due(session, transport, table, batch)) for table in tables]
        if not watch:
            _write_counts(session, "moved", counts)
            return

        def write_moved(queue: str, count: int) -> None:
            if count:
                line = f"moved {count_of(count, 'message')} of {queue}"
                write_lines(json.dumps({"queue": queue, "moved": count}) if session.json else line)
                flush()

        for queue, count in counts:
            write_moved(queue, count)
        mover = DueMover([(transport, table) for table in tables], batch=batch, on_moved=write_moved)
        # Ctrl-C is how this is meant to end.
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(mover.poll())


@click.command()
@any_queues_argument
@with_session
def audit_indexes(session: Session, queues: tuple[str, ...]) -> None:
    """Find missing, outdated or bloated indexes and tables.

    Each finding says what it costs and how to fix it; the exit code is 1 if there are any. Without arguments the
    command audits every queue of the schema.
    """
    with session.transport() as transport, progress(session, "auditing"):
        findings = transport.audit_indexes(*queues)
    for finding in () if session.json else findings:
        write_heading(f"{finding.severity}: {finding.message} ({finding.code})")
        fix = [f"    {line}" for line in finding.fix.splitlines()]
        write_lines(f"  cost: {finding.cost}", f"  fix ({finding.section}):", *fix, "")
    fields = ("queue", "code", "severity", "message", "cost", "fix", "section")
    document = {"findings": [{name: getattr(finding, name) for name in fields} for finding in findings]}
    answer(session, document, count_of(len(findings), "finding") if findings else "no findings")
    if findings:
        raise click.exceptions.Exit(FOUND)


def _move_due(session: Session, transport: QueueTransport, table: QueueTable, batch: int) -> int:
    """Move all that is due, one transaction per batch."""
    total = 0
    with progress(session, f"moving {table}") as on_progress:
        while moved := transport.move_due(table, batch, once=True):
            total += moved
            on_progress(total)
    return total


def _write_counts(session: Session, verb: str, counts: list[tuple[str, int]]) -> None:
    document = {"queues": [{"queue": queue, verb: count} for queue, count in counts]}
    answer_table(session, document, ("queue", verb), [(queue, f"{count:,}") for queue, count in counts], (verb,))
