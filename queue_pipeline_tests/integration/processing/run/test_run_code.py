"""A run whose code is not the newest finishes what it has in work, and leaves the rest to a run with the new code."""

import pytest

from queue_pipeline_tests.support.processing.draining import Worker, declare, drain, fill, numbers
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def queues(transport):
    transport.install("orders", plain_queues=["billing"])


def test_a_run_whose_code_changed_finishes_its_batches_and_takes_no_further(transport):
    fill(transport, 10)
    worker, changed = Worker(transport), []
    worker.before = lambda claim: changed.append("shop.prices")
    ended = drain(transport, worker, slots=1, code_change=lambda: changed[0] if changed else None).run()
    assert (ended.reason, ended.failure) == ("the code changed: shop.prices", None)
    assert numbers(transport) == [0, 1]
    assert transport.peek("orders") == 8
    assert (transport.claims.list(), transport.slots.list()) == ([], [])


def test_a_run_that_waits_for_more_ends_before_it_takes_what_comes_after_the_change(transport):
    """A person edits a file, and then sends the messages that failed back."""
    looks = []

    def code_change():
        looks.append(transport.peek("orders"))
        if len(looks) == 5:
            fill(transport, 2)
        return "shop.prices" if len(looks) >= 5 else None

    ended = drain(transport, Worker(transport), declare(linger_seconds=60), code_change=code_change).run()
    assert ended.reason == "the code changed: shop.prices"
    assert transport.peek("orders") == 2


def test_batches_that_were_claimed_but_not_begun_are_left_to_the_next_run(transport):
    fill(transport, 4)
    claims = [transport.claim("orders", "run 1", 2, 1_000_000, 300) for _ in range(2)]
    worker = Worker(transport)
    drain(transport, worker, code_change=lambda: "shop.prices").run(claims)
    assert worker.done == []
    assert [(claim.owner, claim.messages) for claim in transport.claims.list()] == [(None, 2)] * 2
    drain(transport, worker, owner="run 2").run()
    assert numbers(transport) == [0, 1, 2, 3]


def test_while_it_finishes_its_last_batch_a_run_says_that_it_ends(transport):
    fill(transport, 4)
    worker, changed, seen = Worker(transport), [], []
    orders = transport.resolve("orders")

    def change_and_look(claim):
        changed.append("shop.prices")
        seen.extend(eventually(lambda: [one for one in transport.slots.list(orders) if one.ending]))

    worker.before = change_and_look
    drain(transport, worker, slots=1, code_change=lambda: changed[0] if changed else None).run()
    assert [(one.owner, one.slots, one.ending) for one in seen] == [("run 1", 1, "the code changed: shop.prices")]


def test_a_run_that_is_asked_to_end_takes_no_further_batch(transport):
    fill(transport, 2)
    worker = Worker(transport)
    orders = transport.resolve("orders")
    worker.before = lambda claim: transport.slots.end(orders, "run 1", "other code is deployed")
    ended = drain(transport, worker, declare(linger_seconds=60)).run()
    assert (ended.reason, ended.failure) == ("other code is deployed", None)
    assert numbers(transport) == [0, 1]


def test_another_run_of_the_queue_goes_on(transport):
    fill(transport, 6)
    orders = transport.resolve("orders")
    transport.slots.take(orders, "run 0", 1, 2, 300)
    transport.slots.end(orders, "run 0", "other code is deployed")
    assert drain(transport, Worker(transport)).run().reason == "the queue is empty"
    assert numbers(transport) == list(range(6))
