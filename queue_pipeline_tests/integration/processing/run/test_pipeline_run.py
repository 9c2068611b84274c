"""Receive mode without Spark: batches are really claimed and really completed, only nothing is computed."""

import threading
import time
from datetime import timedelta

import pytest

from queue_pipeline.errors import DatabaseUnavailableError, QueueNotFoundError
from queue_pipeline.transport import new_message
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline_tests.support.processing.draining import Worker, declare, drain, fill, meet, numbers
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture
def transport(backend):
    transport = backend.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


def test_batch_after_batch_is_taken_until_the_queue_is_empty(transport):
    """TT-26: and what comes in afterwards is taken by the next run."""
    fill(transport, 9)
    attempts, worker = [], Worker(transport)
    ended = drain(transport, worker, on_attempt=attempts.append).run()
    assert (ended.reason, ended.failure) == ("the queue is empty", None)
    assert numbers(transport) == list(range(9))
    assert sorted(report.messages for one in attempts for report in one.reports) == [1, 2, 2, 2, 2]
    assert (transport.peek("orders"), transport.claims.list()) == (0, [])
    fill(transport, 2, start=9)
    drain(transport, worker).run()
    assert numbers(transport) == list(range(11))


def test_an_empty_queue_ends_at_once_without_linger(transport):
    started = time.monotonic()
    assert drain(transport, Worker(transport)).run().reason == "the queue is empty"
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("slots", [1, 3])
def test_never_more_batches_than_slots_are_in_work_at_once_and_all_slots_are_used(transport, slots):
    """TT-16: as many batches at once as there are slots, and never one more."""
    fill(transport, 20)
    worker = Worker(transport)
    together = threading.Barrier(slots)
    worker.before = lambda claim: meet(together)
    drain(transport, worker, declare(max_concurrency=3), slots=slots).run()
    assert worker.most == slots
    assert numbers(transport) == list(range(20))


def test_given_claims_come_first(transport):
    fill(transport, 6)
    held = [transport.claim("orders", "run 1", 2) for _ in range(2)]
    worker = Worker(transport)
    drain(transport, worker, slots=1).run(held)
    assert [claim.claim_id for claim in worker.done[:2]] == [claim.claim_id for claim in held]
    assert numbers(transport) == list(range(6))


def test_a_lingering_run_takes_a_message_that_comes_late(transport):
    fill(transport, 1)
    worker = Worker(transport)
    late = threading.Thread(target=lambda: (eventually(lambda: worker.done), fill(transport, 1, start=1)))
    late.start()
    ended = drain(transport, worker, declare(linger_seconds=1.5)).run()
    late.join()
    assert ended.reason == "the queue is empty"
    assert numbers(transport) == [0, 1]
    assert len(worker.done) == 2


def test_no_further_batch_is_taken_once_the_time_of_a_run_is_up(transport):
    fill(transport, 6)
    worker = Worker(transport)
    worker.before = lambda claim: threading.Event().wait(0.3)
    ended = drain(transport, worker, declare(max_run_seconds=0.2), slots=1).run()
    assert ended.reason == "max_run_seconds (0.2 s) are over"
    assert len(worker.done) == 1
    assert transport.peek("orders") == 4
    assert transport.claims.list() == []


def test_a_paused_run_takes_no_further_batch_and_finishes_those_in_work(transport):
    """TT-20: stopping waits for what is being processed."""
    fill(transport, 6)
    worker = Worker(transport)

    def pause(claim):
        transport.pauses.pause("orders", "operator")
        threading.Event().wait(1.2)

    worker.before = pause
    ended = drain(transport, worker, declare(), slots=1).run()
    assert ended.reason == "the pipeline is paused"
    assert [claim.messages for claim in worker.done] == [2]
    assert transport.peek("orders") == 4
    assert drain(transport, worker).run().reason == "the pipeline is paused"
    assert transport.peek("orders") == 4


def test_a_run_continues_while_its_pause_cannot_be_looked_up(transport, monkeypatch, caplog):
    """The database may be unavailable for one look, and back when the batch is completed."""
    fill(transport, 6)

    def away():
        raise DatabaseUnavailableError("the database is starting up")

    monkeypatch.setattr(transport.pauses, "list", away)
    worker = Worker(transport)
    ended = drain(transport, worker, declare(), slots=1).run()
    assert (ended.reason, ended.failure) == ("the queue is empty", None)
    assert sum(claim.messages for claim in worker.done) == 6
    assert "whether it is paused or to end is not known: the database is starting up" in caplog.text


def test_a_batch_that_fails_is_released_and_the_others_are_finished(transport):
    fill(transport, 10)
    worker, taken = Worker(transport), []

    def fail_the_first(claim):
        taken.append(claim)
        if claim.claim_id == taken[0].claim_id:
            eventually(lambda: len(taken) > 1)
            raise ArithmeticError("no")

    worker.before = fail_the_first
    ended = drain(transport, worker).run()
    assert isinstance(ended.failure, ArithmeticError)
    assert ended.reason == "a batch failed"
    assert ended.failed_claim.claim_id == taken[0].claim_id
    assert {claim.claim_id for claim in taken[1:]} == {claim.claim_id for claim in worker.done} != set()
    (claim,) = transport.claims.list()
    assert (claim.claim_id, claim.owner, claim.messages) == (taken[0].claim_id, None, 2)
    assert transport.peek("orders") + transport.peek("billing") == 8
    worker.before = lambda claim: None
    drain(transport, worker).run()
    assert numbers(transport) == list(range(10))


class Terminated(BaseException):
    """What Dagster raises in a run that is terminated: no Exception."""


def test_a_run_that_is_terminated_releases_everything_at_once(transport):
    """TT-22, TT-24: what is in work is stopped and waits for the next run; no message counts as failed."""
    fill(transport, 10)
    worker, stop, interrupted = Worker(transport), threading.Event(), []

    def hang_unless_first(claim):
        taken.append(claim)
        if len(taken) > 1 and claim.claim_id == taken[1].claim_id:
            stop.wait(10)

    def interrupt():
        interrupted.append(True)
        stop.set()

    taken = []
    worker.before = hang_unless_first

    def terminate(attempted):
        raise Terminated

    running = drain(transport, worker, on_attempt=terminate, on_interrupt=interrupt)
    with pytest.raises(Terminated):
        running.run()
    assert interrupted == [True]
    assert {claim.owner for claim in transport.claims.list()} <= {None}
    assert transport.slots.list() == []
    eventually(lambda: worker.at_once == 0)
    assert len(numbers(transport)) == len(set(numbers(transport)))
    worker.before = lambda claim: None
    drain(transport, worker).run()
    assert numbers(transport) == list(range(10))
    assert transport.peek("error") == 0


def test_a_claim_that_another_took_is_left_to_it_and_the_run_goes_on(transport, caplog):
    fill(transport, 4)
    worker, adopted = Worker(transport), []

    def lose_the_first(claim):
        if not adopted:
            adopted.append(transport.claims.adopt(claim, "another"))

    worker.before = lose_the_first
    ended = drain(transport, worker, slots=1).run()
    assert (ended.reason, ended.failure) == ("the queue is empty", None)
    assert numbers(transport) == [2, 3]
    assert [claim.owner for claim in transport.claims.list()] == ["another"]
    transport.claims.complete(Completion(adopted[0], read=None))
    assert "no longer held" in caplog.text


def test_due_messages_are_moved_by_the_run_itself(transport):
    fill(transport, 1)
    transport.send("orders", new_message("7", delay=timedelta(seconds=-1)))
    drain(transport, Worker(transport)).run()
    assert numbers(transport) == [0, 7]


def test_messages_that_become_due_while_a_batch_is_in_work_are_moved_in_time(transport):
    """The run looks for due messages at least twice per second, however seldom it peeks."""
    fill(transport, 1)
    transport.send("orders", new_message("7", delay=timedelta(seconds=0.6)))
    worker = Worker(transport)
    worker.before = lambda claim: eventually(lambda: transport.status("orders")[0].delayed == 0, seconds=5)
    drain(transport, worker, declare(peek_delay=10, linger_seconds=0), slots=1).run()
    assert numbers(transport) == [0, 7]


def test_a_queue_that_is_not_there_is_an_error_of_the_run(backend):
    transport = backend.transport()
    transport.install("other")
    with pytest.raises(QueueNotFoundError, match="queue-pipeline install"):
        drain(transport, Worker(transport)).run()


def test_messages_are_taken_in_their_order(transport):
    fill(transport, 8)
    worker = Worker(transport)
    drain(transport, worker, slots=1).run()
    assert [int(shown.body) for shown in transport.show("billing", 100)] == list(range(8))


# --- slots: what is shared with other runs and machines ----------------------------------------------------
