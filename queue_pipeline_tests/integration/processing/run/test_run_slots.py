"""Runs that share a queue: never more batches in work than there are slots, over all machines."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from queue_pipeline.processing.run.heartbeat import Heartbeat
from queue_pipeline.processing.run.take import slots_of
from queue_pipeline_tests.support.databases.elapsed import end_leases
from queue_pipeline_tests.support.processing.draining import Worker, declare, drain, fill, meet, numbers
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture
def transport(backend):
    transport = backend.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


def held(transport):
    return transport.slots.held(transport.resolve("orders"))


def occupy(transport, owner, slots, most=2):
    assert transport.slots.take(transport.resolve("orders"), owner, slots, most, 300) == slots


@pytest.fixture
def started():
    """Starts runs in threads, and waits for all of them at the end."""
    with ThreadPoolExecutor(4) as threads:
        yield lambda running, *claims: threads.submit(running.run, claims)


def test_two_machines_on_one_queue_never_have_more_batches_in_work_than_are_allowed(transport, backend, started):
    worker, together = Worker(transport), threading.Barrier(2)
    worker.before = lambda claim: meet(together)
    running = []
    for number, owner in enumerate(("run a", "run b"), 1):
        pipeline = declare(linger_seconds=60)
        running.append(started(drain(backend.transport(), worker, pipeline, owner)))
        # A run with nothing to do holds one slot, to look for work in, and leaves the other to the second machine.
        eventually(lambda number=number: list(held(transport).values()) == [1] * number)
    fill(transport, 40)
    eventually(lambda: len(worker.done) == 20)
    transport.pauses.pause("orders", "the test")
    assert [run.result(20).reason for run in running] == ["the pipeline is paused"] * 2
    assert worker.most == 2
    assert {claim.owner for claim in worker.done} == {"run a", "run b"}
    assert numbers(transport) == list(range(40))
    assert transport.slots.list() == []


def test_a_run_that_gets_no_slot_ends_at_once_and_leaves_everything_to_others(transport):
    fill(transport, 6)
    given = transport.claim("orders", "run 1", 2)
    occupy(transport, "run elsewhere", 2)
    worker = Worker(transport)
    ended = drain(transport, worker, declare(linger_seconds=60)).run([given])
    assert ended.failure is None
    assert ended.reason == f"all 2 slots of {transport.resolve('orders')} are taken by run elsewhere (2)"
    assert worker.done == []
    assert [(claim.owner, claim.failures) for claim in transport.claims.list()] == [(None, 0)]
    assert transport.peek("orders") == 4
    assert held(transport) == {"run elsewhere": 2}


def test_a_run_with_more_batches_than_slots_works_on_them_one_after_the_other(transport):
    fill(transport, 6)
    given = [transport.claim("orders", "run 1", 2) for _ in range(2)]
    occupy(transport, "run elsewhere", 1)
    worker = Worker(transport)
    drain(transport, worker).run(given)
    assert worker.most == 1
    assert [claim.claim_id for claim in worker.done[:2]] == [claim.claim_id for claim in given]
    assert numbers(transport) == list(range(6))
    assert held(transport) == {"run elsewhere": 1}


def test_a_run_takes_another_slot_when_one_becomes_free(transport):
    fill(transport, 8)
    occupy(transport, "run elsewhere", 1)
    worker, together = Worker(transport), threading.Barrier(2)

    def end_the_other(claim):
        transport.slots.release_owner("run elsewhere")
        meet(together)

    worker.before = end_the_other
    drain(transport, worker).run()
    assert worker.most == 2
    assert numbers(transport) == list(range(8))


def test_a_run_that_takes_no_further_batch_holds_only_the_slots_that_it_uses(transport, started):
    fill(transport, 6)
    worker, go_on, first = Worker(transport), threading.Event(), []
    together = threading.Barrier(3)

    def pause(claim):
        first.append(claim)
        together.wait(timeout=20)
        transport.pauses.pause("orders", "the test")
        if claim is first[0]:
            go_on.wait(20)

    worker.before = pause
    running = started(drain(transport, worker, declare(max_concurrency=3)))
    eventually(lambda: held(transport) == {"run 1": 1})
    assert len(worker.done) == 2
    go_on.set()
    assert running.result(20).reason == "the pipeline is paused"
    assert held(transport) == {}


def test_the_slots_of_a_killed_run_are_free_when_its_lease_has_expired(transport, backend):
    fill(transport, 4)
    occupy(transport, "run killed", 2)
    transport.claim("orders", "run killed", 2)
    worker = Worker(transport)
    assert "run killed (2)" in drain(transport, worker).run().reason
    end_leases(backend, transport, "run killed")
    assert drain(transport, worker).run().reason == "the queue is empty"
    assert numbers(transport) == list(range(4))
    assert transport.slots.list() == []


def test_the_heartbeat_of_a_run_renews_its_slots(transport):
    occupy(transport, "run elsewhere", 1)
    slots = slots_of(declare(lease_seconds=900), transport, "run 1", process="")
    slots.take(1)
    # As if it had taken them some time ago.
    transport.slots.renew(transport.resolve("orders"), "run 1", 5)
    Heartbeat(transport.claims, 900, slots).beat()
    leases = {one.owner: one.lease_seconds for one in transport.slots.list()}
    assert leases["run 1"] > 800
    assert leases["run elsewhere"] <= 300
