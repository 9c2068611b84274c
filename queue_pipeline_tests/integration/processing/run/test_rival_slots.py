"""Runs and receivers on one queue while batches fail for all: no message is lost, none is there twice."""

import itertools
import threading

import pytest

from queue_pipeline.errors import ClaimLostError, TransientDatabaseError
from queue_pipeline.processing.declaration.recoverability import NO_RETRIES, Recoverability
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.transport import Operation, OutgoingMessage
from queue_pipeline_tests.support.databases.claimed_rows import add_row
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import bodies, declare, fill, run

MESSAGES = 240
POLICIES = {
    "no retries": NO_RETRIES,
    "an unrecoverable type": Recoverability(immediate_retries=3, delayed_retries=0, unrecoverable=("ConnectionError",)),
}


def away_after(batches):
    """Work that succeeds on some batches; from then on it fails for every batch, also for an empty one."""
    calls = itertools.count()

    def work(_):
        if next(calls) >= batches:
            raise ConnectionError("the service is away")

    return work


def is_done(transport):
    return not transport.peek("orders") and not transport.claims.list()


def work_off(transport, owner, policy):
    """Run after run of a pipeline, each until its transform fails for all."""
    pipeline = declare(batch_messages=20, max_concurrency=4, recoverability=policy)
    for number in itertools.count():
        if is_done(transport):
            return
        recovery = Recovery(pipeline, transport, PlainTransformer(away_after(number % 3)))
        PipelineRun(
            pipeline,
            transport,
            f"{owner} {number}",
            recovery,
            slots=2,
        ).run()


def disturb(transport):
    """A rival that claims, splits, lets go, and receives the way that endpoints do."""
    for number in itertools.count():
        if is_done(transport):
            return
        try:
            claim = transport.claim("orders", "rival", 13)
            if claim is not None and number % 2 and claim.messages > 1:
                for part in transport.claims.split(claim, claim.messages // 2):
                    transport.claims.release(part)
            elif claim is not None:
                transport.claims.release(claim)
            with transport.receive("orders", 3) as batch:
                batch.send([Operation("billing", OutgoingMessage(message.body, {})) for message in batch])
        except (ClaimLostError, TransientDatabaseError):
            continue


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_two_runs_and_a_rival_leave_every_message_in_one_place(backend, transport, policy):
    fill(transport, MESSAGES)
    rivals = [(work_off, "left", policy), (work_off, "right", policy), (disturb,)]
    threads = [
        threading.Thread(target=work, args=(backend.transport(endpoint="orders"), *options))
        for work, *options in rivals
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert bodies(transport, "billing") == list(range(MESSAGES))
    assert bodies(transport, "error") == [], "no message is to blame"
    assert is_done(transport)


def test_a_run_ends_at_a_claim_that_changed_and_counts_nothing_against_its_messages(backend, transport):
    fill(transport, 4)
    tampered = []

    def tamper(_):
        if not tampered:
            tampered.extend(transport.claims.list())
            add_row(backend, transport, tampered[0].held)

    drained, attempts = run(transport, PlainTransformer(tamper))
    assert drained.failure is not None and "but the claim holds 5 messages" in str(drained.failure)
    assert attempts == []
    (left,) = transport.claims.list()
    assert (left.owner, left.failures, left.messages) == (None, 0, 4)
    assert (transport.peek("billing"), transport.peek("error")) == (0, 0)
