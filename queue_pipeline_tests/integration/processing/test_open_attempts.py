"""Batches in open transactions: when a run takes them, and what it leaves to a claim."""

import threading

import pytest

from queue_pipeline.processing import open_attempts
from queue_pipeline.processing.drain import Drain
from queue_pipeline.processing.open_attempts import OpenAttempts
from queue_pipeline.processing.recoverability import Recoverability, Step
from queue_pipeline.processing.recovery import Recovery
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport import new_message
from queue_pipeline.transport.claims import Claims
from queue_pipeline.transport.database import CommitUnknownError, Database
from queue_pipeline.transport.errors import DatabaseUnavailableError, TransientDatabaseError
from queue_pipeline.transport.open_batch import OpenBatches
from queue_pipeline_tests.support.plain_transformer import PlainTransformer, poisoned_by
from queue_pipeline_tests.support.recovering import bodies, declare, fill, run

NEVER = Recoverability(immediate_retries=0, delayed_retries=0)


@pytest.fixture
def transport(backend):
    transport = backend.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    if not transport.open_batches.serves(transport.resolve("orders")):
        pytest.skip("batches are claimed on this database")
    return transport


@pytest.fixture
def taken(monkeypatch):
    """How each batch was taken, in order."""
    ways = []

    def noted(kind, name, way):
        original = getattr(kind, name)

        def wrapper(*arguments, **options):
            result = original(*arguments, **options)
            if result is not None:
                ways.append(way)
            return result

        monkeypatch.setattr(kind, name, wrapper)

    noted(Claims, "claim", "claimed")
    noted(OpenBatches, "_receive", "open")
    return ways


def test_a_run_claims_its_first_batch_and_opens_the_others(transport, taken):
    fill(transport, 10)
    ended, attempts = run(transport, PlainTransformer(), declare(batch_messages=3), slots=1)
    assert (ended.reason, ended.failure) == ("the queue is empty", None)
    assert taken == ["claimed", "open", "open", "open"]
    assert bodies(transport, "billing") == list(range(10))
    reports = [report for one in attempts for report in one.reports]
    assert [(report.messages, report.sent, report.attempt) for report in reports] == [(3, 3, 1)] * 3 + [(1, 1, 1)]
    assert len({report.claim_id for report in reports}) == 4
    assert transport.claims.list() == []


def test_results_are_written_in_the_order_of_the_messages(transport):
    fill(transport, 9)
    run(transport, PlainTransformer(), declare(batch_messages=3), slots=1)
    assert [int(shown.body) for shown in transport.show("billing", 100)] == list(range(9))


@pytest.mark.parametrize("mode", ["receive_only", "unreliable"])
def test_other_modes_claim_every_batch(transport, taken, mode):
    fill(transport, 6)
    run(transport, PlainTransformer(), declare(batch_messages=3, transaction_mode=mode, recoverability=NEVER), slots=1)
    assert set(taken) == {"claimed"}
    assert bodies(transport, "billing") == list(range(6))


@pytest.mark.parametrize("options", [{"travel": "executors"}, {"executor_messages": 3}], ids=["executors", "large"])
def test_batches_that_may_be_for_executors_are_claimed(transport, options):
    pipeline = declare(batch_messages=3, **options)
    recovery = Recovery(pipeline, transport, PlainTransformer())
    opened = OpenAttempts(pipeline, transport, recovery, "run 1")
    opened.learn(recovery_of_one(transport, recovery), 0.1)
    assert not opened.is_due


def recovery_of_one(transport, recovery):
    fill(transport, 1)
    claim = transport.claim("orders", "run 1", 1)
    return recovery.attempt(claim)


def test_after_a_slow_batch_the_next_one_is_claimed(transport, taken, monkeypatch):
    monkeypatch.setattr(open_attempts, "LONGEST_SECONDS", 0.0)
    fill(transport, 6)
    run(transport, PlainTransformer(), declare(batch_messages=3), slots=1)
    assert taken == ["claimed", "claimed"]


def test_what_somebody_left_behind_comes_before_the_rest_of_the_queue(transport, taken):
    fill(transport, 12)
    seen = []

    def leave_something(batch):
        seen.append(sorted(map(int, batch)))
        if len(seen) == 2:
            left = transport.claim("orders", "somebody", 2)
            transport.claims.release(left)
            drain._look_around()

    pipeline = declare(batch_messages=3)
    recovery = Recovery(pipeline, transport, PlainTransformer(leave_something))
    drain = Drain(
        pipeline,
        transport,
        "run 1",
        recovery.attempt,
        slots=1,
        limit=recovery.limit,
        opened=OpenAttempts(pipeline, transport, recovery, "run 1"),
    )
    drain.run()
    assert seen[:2] == [[0, 1, 2], [3, 4, 5]]
    assert [6, 7] in seen
    assert bodies(transport, "billing") == list(range(12))


def test_a_failure_is_counted_on_the_claim_that_takes_the_same_messages(transport, taken):
    """The failed attempt in the open batch is the first of those that are configured, not one more."""
    fill(transport, 2)
    transformer = PlainTransformer(poisoned_by(b"1"))
    policy = Recoverability(immediate_retries=2, delayed_retries=0)
    _, attempts = run(transport, transformer, declare(batch_messages=1, recoverability=policy), slots=1)
    assert taken == ["claimed", "open", "claimed"]
    assert transformer.alone == {b"0": 1, b"1": 3}
    assert [one.step for one in attempts if one.failure] == [Step.RETRY, Step.RETRY, Step.GIVE_UP]
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0], [1])


def test_a_poison_message_takes_nobody_of_its_open_batch_with_it(transport, taken):
    fill(transport, 30)
    run(transport, PlainTransformer(poisoned_by(b"14")), declare(batch_messages=10), slots=1)
    assert bodies(transport, "billing") == [number for number in range(30) if number != 14]
    assert bodies(transport, "error") == [14]
    assert taken[:3] == ["claimed", "open", "claimed"]


def test_messages_that_the_transform_refuses_go_to_the_error_queue_with_the_open_batch(transport, taken):
    fill(transport, 6)
    transformer = PlainTransformer()
    transformer.refuse = {b"4": "no such article"}
    run(transport, transformer, declare(batch_messages=3), slots=1)
    assert taken == ["claimed", "open"]
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0, 1, 2, 3, 5], [4])


def odd_message(kind):
    if kind == "came back":
        return new_message("3", headers={wire.RETRIES: "1"})
    return new_message("3", headers={wire.FORWARD_DESTINATION: "billing"})


@pytest.mark.parametrize("kind", ["came back", "to be forwarded"])
def test_what_is_out_of_the_ordinary_is_left_to_a_claim(transport, taken, kind):
    fill(transport, 3)
    transport.send("orders", odd_message(kind))
    fill(transport, 2, start=4)
    run(transport, PlainTransformer(), declare(batch_messages=3), slots=1)
    assert taken[:3] == ["claimed", "open", "claimed"]
    assert bodies(transport, "billing") == list(range(6))


def test_unreadable_headers_are_left_to_a_claim(backend, transport, taken):
    fill(transport, 5)
    table = transport.resolve("orders").qualified
    backend.sql(transport, f"UPDATE {table} SET headers = 'no JSON' WHERE body = CAST(? AS bytea)", (b"4",))
    run(transport, PlainTransformer(), declare(batch_messages=3), slots=1)
    assert taken == ["claimed", "open", "claimed"]
    assert bodies(transport, "billing") == [0, 1, 2, 3]
    assert bodies(transport, "error") == [4]


def test_a_commit_of_which_nobody_knows_is_neither_lost_nor_repeated(transport, monkeypatch):
    """The connection breaks after the server has committed: what was done is done, and the run goes on."""
    fill(transport, 6)
    original, broken = Database._commit, []

    def commit(database, connection):
        original(database, connection)
        if transformer.calls == [3, 3] and not broken:
            broken.append(True)
            raise CommitUnknownError("the connection broke while committing")

    transformer = PlainTransformer()
    monkeypatch.setattr(Database, "_commit", commit)
    ended, _ = run(transport, transformer, declare(batch_messages=3), slots=1)
    assert broken and ended.failure is None
    assert bodies(transport, "billing") == list(range(6))


def test_a_deadlock_victim_is_taken_again(transport, taken, monkeypatch):
    fill(transport, 6)
    original, victims = OpenBatches.write, []

    def write(*arguments):
        if not victims:
            victims.append(True)
            raise TransientDatabaseError("deadlock detected")
        return original(*arguments)

    monkeypatch.setattr(OpenBatches, "write", write)
    ended, _ = run(transport, PlainTransformer(), declare(batch_messages=3), slots=1)
    assert victims and ended.failure is None
    assert taken == ["claimed", "open", "claimed"]
    assert bodies(transport, "billing") == list(range(6))


def test_a_database_that_goes_away_fails_the_run_and_puts_the_messages_back(transport, monkeypatch):
    fill(transport, 6)

    def write(*arguments):
        raise DatabaseUnavailableError("gone")

    monkeypatch.setattr(OpenBatches, "write", write)
    ended, _ = run(transport, PlainTransformer(), declare(batch_messages=3), slots=1)
    assert isinstance(ended.failure, DatabaseUnavailableError)
    assert ended.failed_claim is None
    assert (transport.peek("orders"), bodies(transport, "billing")) == (3, [0, 1, 2])
    assert transport.claims.list() == []


def test_open_batches_at_once_share_no_message(transport):
    fill(transport, 40)
    together = threading.Barrier(3)

    def meet(batch):
        if len(transformer.calls) > 4:
            try:
                together.wait(timeout=5)
            except threading.BrokenBarrierError:
                return

    transformer = PlainTransformer(meet)
    run(transport, transformer, declare(batch_messages=4, max_concurrency=3), slots=3)
    assert bodies(transport, "billing") == list(range(40))
