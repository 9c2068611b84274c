"""`claims` and `slots`: the batches in work, who works on them, and giving a batch back by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import click

from queue_pipeline.cli.output import duration, shortened, size_of, write_json, write_lines, write_table
from queue_pipeline.cli.parameters import ClaimAttempt, Queue
from queue_pipeline.cli.session import Session, pass_session, shared_options
from queue_pipeline.transport.claims.claim import Claim, ClaimStatus
from queue_pipeline.transport.errors import QueuePipelineError
from queue_pipeline.transport.texts import count_of


class ClaimNotFoundError(QueuePipelineError):
    """No process holds this claim at this attempt."""

    exit_code = 3


@click.group(invoke_without_command=True)
@shared_options
@click.pass_context
def claims(context: click.Context) -> None:
    """List and release claims: the batches in work."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


@claims.command("list")
@click.argument("queue", type=Queue(), required=False, metavar="[QUEUE]")
@shared_options
@pass_session
def list_claims(session: Session, queue: str | None) -> None:
    """List the claims of a queue, or of all."""
    with session.transport() as transport:
        found = transport.claims.list(None if queue is None else transport.resolve(queue))
    if session.json:
        write_json({"claims": [{**asdict(status), "claim": name(status), "state": state(status)} for status in found]})
    elif found:
        figures = ("failures", "messages", "size", "age", "lease")
        columns = ("claim", "queue", "state", "owner", *figures, "last error")
        write_table(columns, [_row(status) for status in found], figures=figures)
    else:
        write_lines("no claims")


@claims.command()
@click.argument("claims", type=ClaimAttempt(), nargs=-1, required=True, metavar="CLAIM_ID@GENERATION...")
@shared_options
@pass_session
def release(session: Session, claims: tuple[str, ...]) -> None:
    """Give claims back at once, so that the next receiver takes them over. Name them as `claims list` does.

    Use it only for claims whose owner is gone while the lease still runs. A claim with an expired lease is taken over
    anyway, and an owner that still works loses its work. A claim that another owner took over since it was listed has
    a new generation and is left alone.
    """
    with session.transport() as transport:
        held = {name(status): claim for status in transport.claims.list() if (claim := status.held)}
        chosen = [_chosen(held, one) for one in dict.fromkeys(claims)]
        for claim in chosen:
            transport.claims.release(claim)
    if session.json:
        released = [{"claim_id": c.claim_id, "queue": c.queue, "messages": c.messages} for c in chosen]
        write_json({"released": released})
    else:
        write_table(("released", "queue", "messages"), [(name(c), c.queue, c.messages) for c in chosen])


@claims.command("return")
@click.argument("queue", type=Queue())
@shared_options
@pass_session
def return_claims(session: Session, queue: str) -> None:
    """Put the messages of claims without a holder back into QUEUE.

    Use it for a queue from which a .NET endpoint, for example, will receive again. Messages of a released claim, or of
    one with an expired lease, wait for the next claim and are not visible in the queue.
    """
    with session.transport() as transport:
        table = transport.resolve(queue)
        returned = transport.claims.give_back_abandoned(table)
    if session.json:
        write_json({"queue": table.canonical, "returned": returned})
    else:
        write_lines(f"put {count_of(returned, 'message')} back into {table}")


def name(claim: Claim | ClaimStatus) -> str:
    """What names a claim and its holder: every change of the owner counts the attempt up."""
    return f"{claim.claim_id}@{claim.generation}"


def state(status: ClaimStatus) -> str:
    """Who has a claim now: its holder, or the next receiver."""
    if status.owner is None:
        return "released"
    return "held" if status.lease_seconds > 0 else "lease ran out"


def _chosen(held: Mapping[str, Claim], claim: str) -> Claim:
    if claim not in held:
        raise ClaimNotFoundError(
            f"no process holds claim {claim}: it was completed, released or taken over by another; "
            "see: queue-pipeline claims list"
        )
    return held[claim]


def _row(status: ClaimStatus) -> tuple[object, ...]:
    return (
        name(status),
        status.queue,
        state(status),
        status.owner,
        status.failures,
        f"{status.messages:,}",
        size_of(status.bytes),
        duration(status.age_seconds),
        duration(status.lease_seconds),
        shortened(status.last_error),
    )


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
