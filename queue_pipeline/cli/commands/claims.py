"""`claims` and `slots`: the batches in work, who works on them, and giving a batch back by hand."""

from __future__ import annotations

from dataclasses import asdict

import click

from queue_pipeline.cli.output import answer, answer_table, duration, shortened, size_of
from queue_pipeline.cli.parameters import CLAIM, Text, queue_argument
from queue_pipeline.cli.session import Session, shared_options, with_session
from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.transport.claims.claim import Claim, ClaimStatus
from queue_pipeline.transport.texts import count_of


class ClaimNotFoundError(QueuePipelineError):
    """No process holds this claim at this generation."""

    exit_code = 3


@click.group()
@shared_options
def claims() -> None:
    """List and release claims: the batches in work."""


@claims.command("list")
@click.argument("queue", type=Text(), required=False, metavar="[QUEUE]")
@with_session
def list_claims(session: Session, queue: str | None) -> None:
    """List the claims of a queue, or of all."""
    with session.transport() as transport:
        found = transport.claims.list(None if queue is None else transport.resolve(queue))
    document = {"claims": [{**asdict(status), "claim": name(status), "state": state(status)} for status in found]}
    figures = ("failures", "messages", "size", "age", "lease")
    columns = ("claim", "queue", "state", "owner", *figures, "last error")
    answer_table(session, document, columns, [_row(status) for status in found], figures, nothing="no claims")


@claims.command()
@click.argument("claims", type=CLAIM, nargs=-1, required=True, metavar="CLAIM_ID@GENERATION...")
@with_session
def release(session: Session, claims: tuple[str, ...]) -> None:
    """Give claims back at once, so that the next receiver takes them over. Name them as `claims list` does.

    Use it only for claims whose owner is gone while the lease still runs. A claim with an expired lease is taken over
    anyway, and an owner that still works loses its work. A claim that another owner took over since it was listed has
    a new generation and is left alone.
    """
    with session.transport() as transport:
        asked = dict.fromkeys(one.lower() for one in claims)
        held = {name(status): claim for status in transport.claims.list() if (claim := status.held)}
        if missing := [one for one in asked if one not in held]:
            raise ClaimNotFoundError(
                f"no process holds claim {missing[0]}: it was completed, released or taken over by another; "
                "see: queue-pipeline claims list"
            )
        chosen = [held[one] for one in asked]
        for claim in chosen:
            transport.claims.release(claim)
    released = [{"claim_id": c.claim_id, "queue": c.queue, "messages": c.messages} for c in chosen]
    rows = [(name(c), c.queue, c.messages) for c in chosen]
    answer_table(session, {"released": released}, ("released", "queue", "messages"), rows)


@claims.command("return")
@queue_argument
@with_session
def return_claims(session: Session, queue: str) -> None:
    """Put the messages of claims without a holder back into QUEUE.

    Use it for a queue from which a .NET endpoint, for example, will receive again. Messages of a released claim, or of
    one with an expired lease, wait for the next claim and are not visible in the queue.
    """
    with session.transport() as transport:
        table = transport.resolve(queue)
        returned = transport.claims.give_back_abandoned(table)
    document = {"queue": table.canonical, "returned": returned}
    answer(session, document, f"put {count_of(returned, 'message')} back into {table}")


def name(claim: Claim | ClaimStatus) -> str:
    """A claim and its holder; each change of the owner increases the generation."""
    return f"{claim.claim_id}@{claim.generation}"


def state(status: ClaimStatus) -> str:
    """Whether the claim has a holder."""
    if status.owner is None:
        return "released"
    return "held" if status.lease_seconds > 0 else "lease ran out"


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
@click.argument("queue", type=Text(), required=False, metavar="[QUEUE]")
@with_session
def slots(session: Session, queue: str | None) -> None:
    """List the runs that work on a queue, or on all queues, and the slots that they hold.

    A slot is the right to have one batch in work; max_concurrency of the pipeline is the number of slots of its queue.
    Slots of a crashed machine are free when their lease expires. A run that is ending finishes its batches first.
    """
    with session.transport() as transport:
        found = transport.slots.list(None if queue is None else transport.resolve(queue))
    rows = [
        (one.queue, one.owner, one.slots, duration(one.since_seconds), duration(one.lease_seconds), one.may_take_more)
        for one in found
    ]
    columns = ("queue", "owner", "slots", "for", "lease", "takes more")
    document = {"slots": [asdict(holder) for holder in found]}
    answer_table(session, document, columns, rows, ("slots", "for", "lease"), nothing="no run holds a slot")
