"""`purge`, `audit-indexes` and `move-due`: what keeps queues healthy."""

from __future__ import annotations

import json
import time

import click

from queue_pipeline.cli.output import flush, write, write_heading, write_json, write_lines, write_table
from queue_pipeline.cli.parameters import POSITIVE, any_queues_argument, queues_argument
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.session import Session, pass_session, shared_options
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.due_mover import DueMover
from queue_pipeline.transport.texts import count_of
from queue_pipeline.transport.transport import DEFAULT_MOVE_BATCH, DEFAULT_PURGE_BATCH, QueueTransport

FOUND = 1


@click.command()
@queues_argument
@click.option(
    "--batch",
    type=POSITIVE,
    metavar="N",
    default=DEFAULT_PURGE_BATCH,
    show_default=True,
    help="Messages per transaction.",
)
@shared_options
@pass_session
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
@click.option(
    "--batch",
    type=POSITIVE,
    metavar="N",
    default=DEFAULT_MOVE_BATCH,
    show_default=True,
    help="Messages per transaction.",
)
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C, moving messages as they become due.")
@shared_options
@pass_session
def move_due(session: Session, queues: tuple[str, ...], batch: int, watch: bool) -> None:
    """Move delayed messages that are due to their destinations.

    For queues without a running endpoint or pipeline, which do so by themselves. With --watch the command
    prints a line for each move, with --json a JSON document.
    """
    with session.transport() as transport:
        tables = [transport.resolve(queue) for queue in queues]
        counts = [(table.canonical, _move_due(session, transport, table, batch)) for table in tables]
        if watch:
            for queue, count in counts:
                _write_moved(session, queue, count)
            _watch(
                DueMover(
                    [(transport, table) for table in tables],
                    batch=batch,
                    on_moved=lambda queue, count: _write_moved(session, queue, count),
                )
            )
            return
    _write_counts(session, "moved", counts)


@click.command()
@any_queues_argument
@shared_options
@click.pass_context
def audit_indexes(context: click.Context, queues: tuple[str, ...]) -> None:
    """Find missing, outdated or bloated indexes and tables.

    Each finding says what it costs and how to fix it; the exit code is 1 if there are any. Without arguments the
    command audits every queue of the schema.
    """
    session = context.ensure_object(Session)
    with session.transport() as transport:
        findings = transport.audit_indexes(*queues)
    if session.json:
        fields = ("queue", "code", "severity", "message", "cost", "fix", "section")
        write_json({"findings": [{name: getattr(finding, name) for name in fields} for finding in findings]})
    for finding in () if session.json else findings:
        write_heading(f"{finding.severity}: {finding.message} ({finding.code})")
        fix = [f"    {line}" for line in finding.fix.splitlines()]
        write_lines(f"  cost: {finding.cost}", f"  fix ({finding.section}):", *fix, "")
    if not session.json:
        write_lines(count_of(len(findings), "finding") if findings else "no findings")
    if findings:
        context.exit(FOUND)


def _move_due(session: Session, transport: QueueTransport, table: QueueTable, batch: int) -> int:
    """Move all that is due, one transaction per batch."""
    total = 0
    with progress(session, f"moving {table}") as on_progress:
        while moved := transport.move_due(table, batch, once=True):
            total += moved
            if on_progress is not None:
                on_progress(total)
    return total


def _watch(mover: DueMover) -> None:
    """Move until somebody interrupts, which is how this is meant to end."""
    try:
        while True:
            time.sleep(mover.poll())
    except KeyboardInterrupt:
        return


def _write_moved(session: Session, queue: str, count: int) -> None:
    if not count:
        return
    if session.json:
        write(json.dumps({"queue": queue, "moved": count}) + "\n")
    else:
        write_lines(f"moved {count_of(count, 'message')} of {queue}")
    flush()


def _write_counts(session: Session, verb: str, counts: list[tuple[str, int]]) -> None:
    if session.json:
        write_json({"queues": [{"queue": queue, verb: count} for queue, count in counts]})
    else:
        write_table(("queue", verb), [(queue, f"{count:,}") for queue, count in counts], figures=(verb,))
