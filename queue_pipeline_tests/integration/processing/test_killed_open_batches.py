"""A run may be killed while an open transaction holds its messages: nothing is lost or doubled, and nothing is left."""

from __future__ import annotations

import pytest

from queue_pipeline_tests.support.killed_run import KILLED, OPEN_STEPS, kinds


@pytest.mark.parametrize("times", [1, 2], ids=["first", "second"])
@pytest.mark.parametrize("step", OPEN_STEPS, ids=kinds(OPEN_STEPS))
def test_a_run_that_is_killed_in_an_open_batch(shop, children, step, times):
    """No claim tells of it, and none is needed: the database undoes what was open, or all of it is done."""
    shop.send(40)
    assert children.run(shop.run("run 1", step=step, times=times, batch_messages=4, opened=True)) == [KILLED]
    shop.release("run 1")
    shop.settle()
    shop.check()


def test_a_message_that_kills_whoever_receives_it_is_claimed_by_the_next_run(shop, children):
    """In an open batch nobody counts it; the next run claims its first batch, and that is counted."""
    shop.send(12)
    step, batches = "batch: transforming", {"batch_messages": 4, "opened": True}
    assert children.run(shop.run("run 1", step=step, times=2, **batches)) == [KILLED]
    assert shop.transport.claims.list() == []
    shop.release("run 1")
    assert children.run(shop.run("run 2", step=step, times=1, **batches)) == [KILLED]
    (claim,) = shop.transport.claims.list()
    assert (claim.messages, claim.owner, claim.first_row_version) == (4, "run 2", 5)
