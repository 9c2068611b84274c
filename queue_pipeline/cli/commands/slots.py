"""`slots`: who is at work on which queue, over all machines."""

from __future__ import annotations

from dataclasses import asdict

import click

from queue_pipeline.cli.output import duration, write_json, write_lines, write_table
from queue_pipeline.cli.parameters import Queue
from queue_pipeline.cli.session import Session, pass_session, shared_options


@click.command()
@click.argument("queue", type=Queue(), required=False, metavar="[QUEUE]")
@shared_options
@pass_session
def slots(session: Session, queue: str | None) -> None:
    """List the runs that work on a queue, or on all queues, and the slots that they hold.

    A slot is the right to have one batch in work; max_concurrency of the pipeline is the number of slots of its queue.
    Slots of a crashed machine are free when their lease expires. A run that is ending finishes its batches first.
    """
    with session.transport() as transport:
        found = transport.slots.list(None if queue is None else transport.resolve(queue))
    if session.json:
        write_json({"slots": [asdict(holder) for holder in found]})
    elif found:
        rows = [
            (
                each.queue,
                each.owner,
                each.slots,
                duration(each.since_seconds),
                duration(each.lease_seconds),
                each.may_take_more,
            )
            for each in found
        ]
        columns = ("queue", "owner", "slots", "for", "lease", "takes more")
        write_table(columns, rows, figures=("slots", "for", "lease"))
    else:
        write_lines("no run holds a slot")
