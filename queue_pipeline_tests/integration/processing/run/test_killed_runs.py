"""A run may be killed at any moment: whatever it was at, the end is the same, and nothing is lost or duplicated."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from queue_pipeline_tests.support.processing.killed_run import KILLED, STEPS, Children, kinds
from queue_pipeline_tests.support.processing.killed_shop import Shop

pytestmark = pytest.mark.heavy

REPRESENTATIVES = {
    "claim: committed",
    "batch: transforming",
    "results: claimed rows deleted",
    "results: committed",
    "failure: counted",
    "failure: committed",
    "split: committed",
    "separation: committed",
    "delayed retry: sent",
    "error copy: outbox cleared",
    "due messages: moved",
}
"""One step of each kind, before and after its commit; the others run with all tests only."""


def steps_of(steps, kept=frozenset(REPRESENTATIVES)):
    """The steps as parameters; those that are not kept are slow."""
    return [
        pytest.param(step, marks=() if step in kept else pytest.mark.slow, id=kind)
        for step, kind in zip(steps, kinds(steps), strict=True)
    ]


@pytest.mark.parametrize("step", steps_of(STEPS))
def test_a_killed_run_loses_no_message_and_processes_none_twice(shop, children, step):
    """The first time that the step is reached; the second run is there for what only delayed messages reach."""
    kill_and_settle(shop, children, Shop.release, step)
    shop.check()


UNNOTICED = [
    "claim: committed",
    "batch: transforming",
    "results: fenced",
    "results: outbox cleared",
    "failure: committed",
    "split: committed",
    "separation: committed",
    "delayed retry: sent",
    "error copy: outbox cleared",
]


@pytest.mark.parametrize("step", steps_of(UNNOTICED, {"batch: transforming", "results: outbox cleared"}))
def test_messages_of_a_run_whose_death_was_not_noticed_are_processed_once(shop, children, step):
    """Its lease expires by itself, and the run that takes the batch over counts the failure."""
    kill_and_settle(shop, children, Shop.let_the_lease_be_over, step)
    shop.check()


LATER = {
    "batch: transforming": 4,
    "results: sent": 3,
    "results: committed": 2,
    "failure: committed": 3,
    "split: committed": 3,
    "delayed retry: outbox cleared": 2,
    "error copy: committed": 2,
}


@pytest.mark.parametrize("step", steps_of(list(LATER), {"results: sent", "split: committed"}))
def test_messages_of_a_run_that_is_killed_later_are_processed_once(shop, children, step):
    """Not at the first batch but while one is being halved, or after half of the poison went to the error queue."""
    kill_and_settle(shop, children, Shop.release, step, LATER[step])
    shop.check()


BESIDE_ANOTHER = {"batch: transforming": 3, "results: sent": 1, "failure: counted": 2, "split: committed": 1}


@pytest.mark.parametrize("step", steps_of(list(BESIDE_ANOTHER), {"results: sent"}))
def test_one_of_two_runs_on_a_queue_is_killed(shop, children, step):
    """The first of them has the poison; the other one goes on, and takes nothing that is still held."""
    shop.send(60)
    one, other = "run 1", "run 2"
    codes = children.run(
        shop.run(one, step=step, times=BESIDE_ANOTHER[step], batch_messages=8),
        shop.run(other, after=one, batch_messages=8),
    )
    assert codes == [KILLED, 0]
    shop.release(one)
    shop.settle()
    shop.check()


def test_a_run_that_is_not_killed_has_the_same_results(shop, children):
    shop.send(20)
    assert children.run(shop.run("run 1")) == [0]
    shop.let_the_delay_be_over()
    assert children.run(shop.run("run 2")) == [0]
    shop.check()


def kill_and_settle(
    shop: Shop, children: Children, end: Callable[[Shop, str], None], step: str, times: int = 1
) -> None:
    """Two runs with a delay between them, of which one dies; then runs until all is quiet."""
    shop.send(20)
    shop.leave_behind(3)
    (code,) = children.run(shop.run("run 1", step=step, times=times))
    died = "run 1" if code == KILLED else None
    if died is None:
        assert code == 0
    else:
        end(shop, died)
    shop.let_the_delay_be_over()
    shop.send(4)
    if died is None:
        assert children.run(shop.run("run 2", step=step, times=times)) == [KILLED], "the step was never reached"
        end(shop, "run 2")
    shop.settle()
