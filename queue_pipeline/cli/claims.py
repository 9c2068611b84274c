"""`claims`: the batches in work, and giving one back by hand."""

from __future__ import annotations

import uuid
from dataclasses import asdict

import click

from queue_pipeline.cli.output import count_of, duration, shortened, size_of, write_json, write_lines, write_table
from queue_pipeline.cli.parameters import Queue
from queue_pipeline.cli.session import Session, pass_session, shared_options
from queue_pipeline.transport.claim import Claim, ClaimStatus
from queue_pipeline.transport.errors import QueuePipelineError
from queue_pipeline.transport.transport import QueueTransport


class ClaimNotFoundError(QueuePipelineError):
    """There is no claim with this id that anybody holds."""

    exit_code = 3


@click.group(invoke_without_command=True)
@shared_options
@click.pass_context
def claims(context: click.Context) -> None:
    """Look after claims: the batches that are being processed."""
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
        write_json({"claims": [{**asdict(status), "state": state(status)} for status in found]})
    elif found:
        figures = ("attempt", "failures", "messages", "size", "age", "lease")
        columns = ("claim", "queue", "state", "owner", *figures, "last error")
        write_table(columns, [_row(status) for status in found], figures=figures)
    else:
        write_lines("no claims")


@claims.command()
@click.argument("claim_ids", type=click.UUID, nargs=-1, required=True, metavar="CLAIM_ID...")
@shared_options
@pass_session
def release(session: Session, claim_ids: tuple[uuid.UUID, ...]) -> None:
    """Give claims back at once, so that the next receiver takes them over.

    Only for claims whose owner is gone while the lease still runs: a claim whose lease ran out is taken over
    without this, and an owner that still works loses what it did.
    """
    with session.transport() as transport:
        held = [_held(transport, str(claim_id)) for claim_id in dict.fromkeys(claim_ids)]
        for claim in held:
            transport.claims.release(claim)
    if session.json:
        released = [{"claim_id": c.claim_id, "queue": c.queue, "messages": c.messages} for c in held]
        write_json({"released": released})
    else:
        write_table(("released", "queue", "messages"), [(c.claim_id, c.queue, c.messages) for c in held])


@claims.command("return")
@click.argument("queue", type=Queue())
@shared_options
@pass_session
def return_claims(session: Session, queue: str) -> None:
    """Put the messages of claims that nobody holds back into QUEUE.

    For a queue that is to be received from without claims again, by a .NET endpoint for example: messages of a
    released claim, or of one whose lease ran out, wait for the next claim and are seen by nobody else.
    """
    with session.transport() as transport:
        table = transport.resolve(queue)
        returned = transport.claims.give_back_abandoned(table)
    if session.json:
        write_json({"queue": table.canonical, "returned": returned})
    else:
        write_lines(f"put {count_of(returned, 'message')} back into {table}")


def state(status: ClaimStatus) -> str:
    """Who has a claim now: somebody, or whoever comes next."""
    if status.owner is None:
        return "released"
    return "held" if status.lease_seconds > 0 else "lease ran out"


def _held(transport: QueueTransport, claim_id: str) -> Claim:
    claim = transport.claims.find(claim_id)
    if claim is None:
        raise ClaimNotFoundError(
            f"nobody holds a claim {claim_id}: it was completed or released; see: queue-pipeline claims list"
        )
    return claim


def _row(status: ClaimStatus) -> tuple[object, ...]:
    return (
        status.claim_id,
        status.queue,
        state(status),
        status.owner,
        status.attempt,
        status.failures,
        f"{status.messages:,}",
        size_of(status.bytes),
        duration(status.age_seconds),
        duration(status.lease_seconds),
        shortened(status.last_error),
    )
