"""Receive mode without Spark: batches are really claimed and really completed, only nothing is computed."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pyarrow as pa
import pytest

from queue_pipeline.processing.batch_report import BatchReport
from queue_pipeline.processing.drain import Drain, places_of
from queue_pipeline.processing.heartbeat import Heartbeat
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.recovery import Attempted
from queue_pipeline.transport import Operation, OutgoingMessage, new_message
from queue_pipeline.transport.errors import DatabaseUnavailableError, QueueNotFoundError
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture
def transport(backend):
    transport = backend.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


def declare(**options):
    given = {"batch_messages": 2, "max_concurrency": 2, "linger_seconds": 0, "peek_delay": 0.1}
    return QueuePipeline(name="orders", input_queue="orders", transform=lambda m: m, **{**given, **options})


def fill(transport, count, start=0):
    transport.send("orders", [OutgoingMessage(str(n).encode(), {}) for n in range(start, start + count)])


class Worker:
    """Completes batches with a copy of each message for billing, and counts how many are at it at once."""

    def __init__(self, transport):
        self.transport = transport
        self.done, self.at_once, self.most = [], 0, 0
        self.lock = threading.Lock()
        self.before = lambda claim: None

    def __call__(self, claim):
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        try:
            self.before(claim)
            messages, _ = self.transport.claims.messages(claim)
            copies = [Operation("billing", OutgoingMessage(message.body, {})) for message in messages]
            self.transport.claims.complete(claim, copies)
        finally:
            with self.lock:
                self.at_once -= 1
        with self.lock:
            self.done.append(claim)
        nothing = pa.chunked_array([pa.array([], pa.string())])
        report = BatchReport(
            claim.claim_id, claim.attempt, claim.messages, 0, claim.messages, (), 0, 0, 0, 0, 0, nothing,
            pa.chunked_array([pa.array([], pa.float64())]),
        )  # fmt: skip
        return Attempted([report])


def drain(transport, worker, pipeline=None, owner="run 1", **options):
    pipeline = pipeline or declare()
    return Drain(pipeline, transport, owner, worker, **{"slots": pipeline.slots, **options})


def numbers(transport, queue="billing"):
    return sorted(int(shown.body) for shown in transport.show(queue, 1_000))


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
    worker.before = lambda claim: _meet(together)
    drain(transport, worker, declare(max_concurrency=3), slots=slots).run()
    assert worker.most == slots
    assert numbers(transport) == list(range(20))


def _meet(barrier):
    """All slots are busy at once at least the first time; later on, nobody waits for long."""
    try:
        barrier.wait(timeout=10)
    except threading.BrokenBarrierError:
        return
    barrier.abort()


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


def test_no_further_batch_is_taken_once_the_time_of_a_run_is_over(transport):
    fill(transport, 6)
    worker = Worker(transport)
    worker.before = lambda claim: threading.Event().wait(0.3)
    ended = drain(transport, worker, declare(max_run_seconds=0.2), slots=1).run()
    assert ended.reason == "max_run_seconds (0.2 s) are over"
    assert len(worker.done) == 1
    assert transport.peek("orders") == 4
    assert transport.claims.list() == []


def test_a_pause_ends_the_taking_and_what_is_in_work_is_finished(transport):
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


def test_a_run_goes_on_while_nobody_can_tell_whether_it_is_paused(transport, monkeypatch, caplog):
    """The database may be away for a look, and back when the batch is completed."""
    fill(transport, 6)

    def away():
        raise DatabaseUnavailableError("the database is starting up")

    monkeypatch.setattr(transport.pauses, "list", away)
    worker = Worker(transport)
    ended = drain(transport, worker, declare(), slots=1).run()
    assert (ended.reason, ended.failure) == ("the queue is empty", None)
    assert sum(claim.messages for claim in worker.done) == 6
    assert "nobody can tell whether it is paused: the database is starting up" in caplog.text


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


def test_a_run_that_is_terminated_lets_go_of_everything_at_once(transport):
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
    assert transport.receivers.list() == []
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
    transport.claims.complete(adopted[0])
    assert "no longer held" in caplog.text


def test_due_messages_are_moved_by_the_run_itself(transport):
    fill(transport, 1)
    transport.send("orders", new_message("7", delay=timedelta(seconds=-1)))
    drain(transport, Worker(transport)).run()
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


# --- places: what is shared with other runs and machines ---------------------------------------------------


def held(transport):
    return transport.receivers.held(transport.resolve("orders"))


def occupy(transport, owner, places, most=2):
    assert transport.receivers.take(transport.resolve("orders"), owner, places, most, 300) == places


@pytest.fixture
def started():
    """Starts runs in threads, and waits for all of them at the end."""
    with ThreadPoolExecutor(4) as threads:
        yield lambda running, *claims: threads.submit(running.run, claims)


def test_two_machines_on_one_queue_never_have_more_batches_in_work_than_are_allowed(transport, backend, started):
    worker, together = Worker(transport), threading.Barrier(2)
    worker.before = lambda claim: _meet(together)
    running = []
    for number, owner in enumerate(("run a", "run b"), 1):
        pipeline = declare(linger_seconds=60)
        running.append(started(drain(backend.transport(), worker, pipeline, owner)))
        # A run with nothing to do holds one place, to look for work in, and leaves the other to the second machine.
        eventually(lambda number=number: list(held(transport).values()) == [1] * number)
    fill(transport, 40)
    eventually(lambda: len(worker.done) == 20)
    transport.pauses.pause("orders", "the test")
    assert [run.result(20).reason for run in running] == ["the pipeline is paused"] * 2
    assert worker.most == 2
    assert {claim.owner for claim in worker.done} == {"run a", "run b"}
    assert numbers(transport) == list(range(40))
    assert transport.receivers.list() == []


def test_a_run_that_finds_no_place_ends_at_once_and_leaves_everything_to_others(transport):
    fill(transport, 6)
    given = transport.claim("orders", "run 1", 2)
    occupy(transport, "run elsewhere", 2)
    worker = Worker(transport)
    ended = drain(transport, worker, declare(linger_seconds=60)).run([given])
    assert ended.failure is None
    assert ended.reason == f"all 2 places of {transport.resolve('orders')} are taken by run elsewhere (2)"
    assert worker.done == []
    assert [(claim.owner, claim.failures) for claim in transport.claims.list()] == [(None, 0)]
    assert transport.peek("orders") == 4
    assert held(transport) == {"run elsewhere": 2}


def test_a_run_with_more_batches_than_places_works_on_them_one_after_the_other(transport):
    fill(transport, 6)
    given = [transport.claim("orders", "run 1", 2) for _ in range(2)]
    occupy(transport, "run elsewhere", 1)
    worker = Worker(transport)
    drain(transport, worker).run(given)
    assert worker.most == 1
    assert [claim.claim_id for claim in worker.done[:2]] == [claim.claim_id for claim in given]
    assert numbers(transport) == list(range(6))
    assert held(transport) == {"run elsewhere": 1}


def test_a_run_grows_when_a_place_becomes_free(transport):
    fill(transport, 8)
    occupy(transport, "run elsewhere", 1)
    worker, together = Worker(transport), threading.Barrier(2)

    def end_the_other(claim):
        transport.receivers.release_owner("run elsewhere")
        _meet(together)

    worker.before = end_the_other
    drain(transport, worker).run()
    assert worker.most == 2
    assert numbers(transport) == list(range(8))


def test_a_run_that_takes_no_more_holds_only_the_places_that_it_works_in(transport, started):
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


def test_the_places_of_a_killed_run_are_free_when_its_lease_is_over(transport, backend):
    fill(transport, 4)
    occupy(transport, "run killed", 2)
    transport.claim("orders", "run killed", 2)
    worker = Worker(transport)
    assert "run killed (2)" in drain(transport, worker).run().reason
    past = {
        "sqlite": "LeaseUntil = 0",
        "postgresql": "lease_until = now() - interval '1 second'",
        "sqlserver": "LeaseUntil = DATEADD(second, -1, SYSUTCDATETIME())",
    }[backend.name]
    with transport.transaction() as transaction:
        for table in ("QueueClaims", "QueueReceivers"):
            transaction.execute(f"UPDATE {transport.book.own(table).qualified} SET {past}")
    assert drain(transport, worker).run().reason == "the queue is empty"
    assert numbers(transport) == list(range(4))
    assert transport.receivers.list() == []


def test_the_heartbeat_of_a_run_renews_its_places(transport):
    occupy(transport, "run elsewhere", 1)
    places = places_of(declare(lease_seconds=900), transport, "run 1")
    places.take(1)
    # As if it had taken them some time ago.
    transport.receivers.renew(transport.resolve("orders"), "run 1", 5)
    Heartbeat(transport.claims, 900, places).beat()
    leases = {one.owner: one.lease_seconds for one in transport.receivers.list()}
    assert leases["run 1"] > 800
    assert leases["run elsewhere"] <= 300


def test_where_places_are_not_counted_a_run_works_as_it_is_told(transport, backend):
    backend.sql(transport, f"DROP TABLE {transport.book.own('QueueReceivers').qualified}")
    fill(transport, 12)
    worker, together = Worker(transport), threading.Barrier(2)
    worker.before = lambda claim: _meet(together)
    assert drain(transport, worker).run().reason == "the queue is empty"
    assert worker.most == 2
    assert numbers(transport) == list(range(12))
