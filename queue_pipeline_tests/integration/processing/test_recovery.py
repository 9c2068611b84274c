"""What becomes of messages that fail, on real databases; the transform is plain Python, everything else is real."""

import contextlib
import math
import random
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from queue_pipeline.processing.drain import Drain
from queue_pipeline.processing.errors import TransformError
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.recoverability import Recoverability, Step
from queue_pipeline.processing.recovery import Recovery
from queue_pipeline.transport import OutgoingMessage, new_message
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.addressing import DELAYED_SUFFIX
from queue_pipeline.transport.errors import ClaimLostError, DatabaseUnavailableError, QueueNotFoundError
from queue_pipeline_tests.support.plain_transformer import PlainTransformer, Poisoned, poisoned_by

AT_ONCE = Recoverability(immediate_retries=2, delayed_retries=0)


@pytest.fixture
def transport(backend):
    transport = backend.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error", "audit"])
    return transport


def declare(**options):
    given = {"name": "orders", "input_queue": "orders", "transform": lambda m: m, "linger_seconds": 0}
    return QueuePipeline(**{**given, "peek_delay": 0.1, "recoverability": AT_ONCE, **options})


def fill(transport, count, start=0):
    transport.send("orders", [new_message(f"{n}") for n in range(start, start + count)])


def run(transport, transformer, pipeline=None, **options):
    """One run of a pipeline; returns how it ended and its attempts."""
    pipeline = pipeline or declare()
    recovery, attempts = Recovery(pipeline, transport, transformer), []
    drain = Drain(
        pipeline, transport, "run 1", recovery.attempt,
        limit=recovery.limit, on_attempt=attempts.append, **{"slots": pipeline.slots, **options},
    )  # fmt: skip
    return drain.run(), attempts


def bodies(transport, queue):
    return sorted(int(shown.body) for shown in transport.show(queue, 100_000))


def headers(transport, queue):
    return [shown.headers for shown in transport.show(queue, 100_000)]


def make_due(backend, transport):
    """Let all delayed messages be due now, as if their time had passed."""
    table = transport.book.sibling(transport.resolve("orders"), DELAYED_SUFFIX).qualified
    past = {
        "sqlite": "Due = 0",
        "postgresql": "due = now() - interval '1 second'",
        "sqlserver": "Due = DATEADD(second, -1, GETUTCDATE())",
    }[backend.name]
    with transport.transaction() as transaction:
        transaction.execute(f"UPDATE {table} SET {past}")
    return transport.delayed.move_due(transport.resolve("orders"))


def test_one_poison_message_takes_nobody_with_it(transport):
    """TT-03: the error queue gets the original exception, headers and body; the others are processed once."""
    fill(transport, 10)
    poison = transport.show("orders", 10)[3]
    ended, attempts = run(transport, PlainTransformer(poisoned_by(b"3")))
    assert (ended.reason, ended.failure) == ("the queue is empty", None)
    assert bodies(transport, "billing") == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert bodies(transport, "error") == [3]
    (stored,) = headers(transport, "error")
    assert {name: stored[name] for name in poison.headers} == poison.headers
    assert stored[wire.EXCEPTION_TYPE].endswith("plain_transformer.Poisoned")
    assert stored[wire.EXCEPTION_MESSAGE] == "3 is poison"
    assert stored[wire.FAILED_QUEUE] == transport.resolve("orders").canonical
    assert "at queue_pipeline_tests.support.plain_transformer" in stored[wire.EXCEPTION_STACK_TRACE]
    assert stored["NServiceBus.ExceptionInfo.Data.Message ID"] == poison.headers[wire.MESSAGE_ID]
    assert (transport.peek("orders"), transport.claims.list()) == (0, [])
    assert [one.step for one in attempts if one.failure][-1] is Step.GIVE_UP


def test_a_message_alone_is_tried_exactly_as_often_as_is_configured(transport):
    """TT-04, TT-06: attempts are counted 1, 2, 3 across immediate retries, then the message is given up."""
    fill(transport, 1)
    transformer = PlainTransformer(poisoned_by(b"0"))
    _, attempts = run(transport, transformer)
    assert transformer.calls == [1, 1, 1]
    assert [claim.failures for one in attempts for claim in one.again] == [1, 2]
    assert [one.step for one in attempts] == [Step.RETRY, Step.RETRY, Step.GIVE_UP]


@pytest.mark.parametrize("poison", [[0], [9_999], [0, 1, 2, 3, 4, 5, 6], [3, 1_000, 4_095, 4_096, 5_000, 7_777, 9_998]])
def test_ten_thousand_messages_with_poison_among_them(transport, poison):
    """Each poison message is found in at most log2(N) rounds of halving, and tried as often as is configured."""
    count = 10_000
    fill(transport, count)
    transformer = PlainTransformer(poisoned_by(*(str(n).encode() for n in poison)))
    run(transport, transformer)
    assert bodies(transport, "billing") == [n for n in range(count) if n not in poison]
    assert bodies(transport, "error") == sorted(poison)
    assert {int(body): tries for body, tries in transformer.alone.items() if int(body) in poison} == dict.fromkeys(
        poison, AT_ONCE.attempts
    )
    rounds = math.ceil(math.log2(count))
    halvings = len(poison) * rounds
    assert len(transformer.calls) <= 1 + 2 * halvings + len(poison) * AT_ONCE.immediate_retries
    assert transport.claims.list() == []


def test_delayed_retries_come_back_later_and_count_anew(backend, transport):
    """TT-05: after a delayed retry the message is at attempt 1 again; the copies carry what NServiceBus writes."""
    fill(transport, 4)
    pipeline = declare(recoverability=Recoverability(immediate_retries=1, delayed_retries=2))
    transformer = PlainTransformer(poisoned_by(b"2"))
    original = transport.show("orders", 4)[2]
    for number in (1, 2):
        run(transport, transformer, pipeline)
        assert transformer.alone[b"2"] == 2 * number
        (status,) = transport.status("orders")
        assert (status.delayed, transport.peek("error")) == (1, 0)
        assert 0 < status.next_due_seconds <= 10 * number
        assert make_due(backend, transport) == 1
        (shown,) = transport.show("orders", 10)
        assert shown.headers[wire.RETRIES] == str(number)
        assert datetime.now(UTC) - wire.parse_timestamp(shown.headers[wire.RETRIES_TIMESTAMP]) < timedelta(minutes=5)
        assert wire.DELIVER_AT in shown.headers
        assert shown.body == original.body
        assert shown.headers[wire.MESSAGE_ID] == original.headers[wire.MESSAGE_ID]
    run(transport, transformer, pipeline)
    assert transformer.alone[b"2"] == pipeline.recoverability.attempts == 6
    (stored,) = headers(transport, "error")
    assert wire.RETRIES not in stored
    assert wire.RETRIES_TIMESTAMP in stored
    assert bodies(transport, "billing") == [0, 1, 3]


def test_messages_that_came_back_do_not_fail_the_fresh_ones(backend, transport):
    fill(transport, 3)
    pipeline = declare(recoverability=Recoverability(immediate_retries=0, delayed_retries=1))
    transformer = PlainTransformer(poisoned_by(b"1"))
    run(transport, transformer, pipeline)
    make_due(backend, transport)
    fill(transport, 50, start=10)
    transformer.calls.clear()
    run(transport, transformer, pipeline)
    assert sorted(transformer.calls) == [1, 50]
    assert bodies(transport, "error") == [1]
    assert bodies(transport, "billing") == [0, 2, *range(10, 60)]


def test_a_message_whose_retrying_is_a_day_old_is_not_tried_later_again(transport):
    old = wire.format_timestamp(datetime.now(UTC) - timedelta(hours=25))
    transport.send("orders", new_message("1", headers={wire.RETRIES: "1", wire.RETRIES_TIMESTAMP: old}))
    run(transport, PlainTransformer(poisoned_by(b"1")), declare(recoverability=Recoverability(immediate_retries=0)))
    assert bodies(transport, "error") == [1]
    assert transport.status("orders")[0].delayed == 0


def test_an_unrecoverable_error_is_tried_once_and_takes_nobody_with_it(transport):
    fill(transport, 8)
    transformer = PlainTransformer(poisoned_by(b"5"))
    policy = Recoverability(unrecoverable=[Poisoned])
    run(transport, transformer, declare(recoverability=policy))
    assert transformer.alone[b"5"] == 1
    assert bodies(transport, "error") == [5]
    assert len(bodies(transport, "billing")) == 7


def test_messages_that_the_transform_refuses_fail_nobody_else(transport):
    fill(transport, 8)
    transformer = PlainTransformer()
    transformer.refuse = {b"2": "no", b"6": "never"}
    _, attempts = run(transport, transformer)
    assert transformer.calls == [8]
    assert bodies(transport, "error") == [2, 6]
    assert [report.sent for one in attempts for report in one.reports] == [6]


def test_a_transform_that_is_broken_for_all_is_not_searched_for_poison(backend, transport):
    """A batch that no message is at fault of is tried whole, waits whole, and ends in the error queue whole."""
    fill(transport, 1_000)

    def broken(messages):
        raise ArithmeticError("the transform is broken")

    transformer = PlainTransformer(broken)
    pipeline = declare(recoverability=Recoverability(immediate_retries=2, delayed_retries=1, rate_limit_after=None))
    ended, _ = run(transport, transformer, pipeline)
    assert (ended.reason, str(ended.failure)) == ("the transform fails on every batch", "the transform is broken")
    assert transformer.calls == [1_000] * 3
    assert transport.status("orders")[0].delayed == 1_000
    assert make_due(backend, transport) == 1_000
    run(transport, transformer, pipeline)
    assert transformer.calls == [1_000] * 6
    assert bodies(transport, "error") == list(range(1_000))
    assert (transport.peek("billing"), transport.claims.list()) == (0, [])


def test_a_transform_that_cannot_stand_an_empty_batch_is_searched_for_poison_all_the_same(transport):
    fill(transport, 8)

    def touchy(messages):
        if not messages:
            raise IndexError("no first message")
        poisoned_by(b"2")(messages)

    ended, _ = run(transport, PlainTransformer(touchy))
    assert ended.failure is None
    assert bodies(transport, "error") == [2]
    assert len(bodies(transport, "billing")) == 7


@pytest.mark.parametrize("count", [1, 4])
def test_a_transform_that_is_wrong_for_any_message_keeps_them_where_they_are(transport, count):
    """Code that has to be mended first: the run fails, and its messages count as nothing and wait."""
    fill(transport, count)

    def wrong(messages):
        raise TransformError("no such columns")

    ended, attempts = run(transport, PlainTransformer(wrong))
    assert isinstance(ended.failure, TransformError)
    assert attempts == []
    assert [(claim.owner, claim.failures) for claim in transport.claims.list()] == [(None, 0)]
    assert transport.failures.list() == {}


def test_a_transform_that_fails_at_random_loses_and_doubles_nothing(transport):
    """Thirty of a hundred calls fail, over 20,000 messages."""
    count, chance = 20_000, random.Random(4)
    fill(transport, count)

    def unsteady(messages):
        if chance.random() < 0.3:
            raise ConnectionError("not today")

    policy = Recoverability(immediate_retries=20, delayed_retries=0, rate_limit_after=None)
    ended, _ = run(transport, PlainTransformer(unsteady), declare(batch_messages=500, recoverability=policy))
    assert ended.failure is None
    assert bodies(transport, "billing") == list(range(count))
    assert (transport.peek("error"), transport.peek("orders"), transport.claims.list()) == (0, 0, [])
    ids = Counter(one[wire.MESSAGE_ID] for one in headers(transport, "billing"))
    assert set(ids.values()) == {1}


def test_failures_are_counted_where_another_process_finds_them(transport):
    """UT-16, UT-17, UT-18: the first failure, further ones with the last error, and none once it succeeded."""
    fill(transport, 1)
    claim = transport.claim("orders", "one", 10)
    failed = transport.claims.fail(claim, "ValueError: first")
    assert failed.failures == 1
    (status,) = transport.claims.list()
    assert (status.failures, status.last_error) == (1, "ValueError: first")
    failed = transport.claims.fail(failed, "ValueError: second")
    (status,) = transport.claims.list()
    assert (status.failures, status.last_error) == (2, "ValueError: second")
    address = transport.resolve("orders").canonical
    assert (transport.failures.list()[address].failures, transport.failures.list()[address].last_error) == (
        2,
        "ValueError: second",
    )
    transport.claims.release(failed)
    other = transport.claim("orders", "another", 10)
    assert (other.failures, other.attempt) == (2, 2)
    with pytest.raises(ClaimLostError):
        transport.claims.fail(claim, "too late")
    transport.claims.complete(other)
    transport.failures.clear(address)
    assert (transport.claims.list(), transport.failures.list()) == ([], {})


def test_restarts_do_not_multiply_the_attempts(transport):
    """A run that ends after every attempt: the message is tried as often as by one run."""
    fill(transport, 1)
    transformer, pipeline = PlainTransformer(poisoned_by(b"0")), declare()
    for number in range(AT_ONCE.attempts):
        recovery = Recovery(pipeline, transport, transformer)
        claim = transport.claim("orders", f"run {number}", 10)
        assert claim.failures == number
        attempted = recovery.attempt(claim)
        for again in attempted.again:
            transport.claims.release(again)
    assert transformer.alone[b"0"] == 3
    assert bodies(transport, "error") == [0]


def test_a_batch_whose_holder_died_is_halved_before_it_is_tried_again(transport):
    """What kills the process cannot be caught: the claims that it leaves behind count as failed."""
    fill(transport, 8)
    transformer, pipeline = PlainTransformer(), declare()
    transport.claims.begin(transport.claim("orders", "died", 10))
    transport.claims.release_owner("died", failed=True)
    run(transport, transformer, pipeline, slots=1)
    assert transformer.calls == [4, 4]
    assert bodies(transport, "billing") == list(range(8))


def test_what_a_dead_run_had_not_begun_counts_nothing(transport):
    """Claimed, or split off and waiting, when its holder died: it was no part of that."""
    fill(transport, 3)
    claim = transport.claim("orders", "died", 10)
    transport.claims.begin(claim)
    first, _ = transport.claims.split(claim, 1)
    transport.claims.begin(first)
    transport.claims.release_owner("died", failed=True)
    assert [(one.messages, one.failures) for one in transport.claims.list()] == [(1, 1), (2, 0)]
    policy = Recoverability(immediate_retries=0, delayed_retries=0)
    transformer = PlainTransformer()
    run(transport, transformer, declare(recoverability=policy), slots=1)
    assert transformer.calls == [2]
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([1, 2], [0])


def test_a_death_after_the_failure_was_counted_does_not_count_it_again(transport):
    fill(transport, 1)
    claim = transport.claim("orders", "died", 10)
    transport.claims.begin(claim)
    transport.claims.fail(claim, "ValueError: no")
    transport.claims.release_owner("died", failed=True)
    assert [one.failures for one in transport.claims.list()] == [1]


def test_a_message_that_kills_every_process_goes_to_the_error_queue(transport):
    fill(transport, 1)
    for number in range(AT_ONCE.attempts):
        claim = transport.claim("orders", f"run {number}", 10)
        assert claim.failures == number
        transport.claims.begin(claim)
        transport.claims.release_owner(f"run {number}", failed=True)
    transformer = PlainTransformer()
    run(transport, transformer)
    assert transformer.calls == []
    (stored,) = headers(transport, "error")
    assert stored[wire.EXCEPTION_TYPE].endswith("AbandonedError")
    assert bodies(transport, "error") == [0]


def test_what_no_message_is_at_fault_of_ends_the_run_and_counts_nothing(transport):
    fill(transport, 4)

    def away(messages):
        raise DatabaseUnavailableError("gone")

    ended, _ = run(transport, PlainTransformer(away))
    assert isinstance(ended.failure, DatabaseUnavailableError)
    (claim,) = transport.claims.list()
    assert (claim.owner, claim.failures, claim.messages) == (None, 0, 4)
    assert transport.failures.list() == {}


def test_an_output_queue_that_is_missing_is_no_fault_of_the_messages(transport):
    fill(transport, 4)
    pipeline = declare(output_queues=["nowhere"])
    ended, _ = run(transport, PlainTransformer(queue="nowhere"), pipeline)
    assert isinstance(ended.failure, QueueNotFoundError)
    assert transport.claims.list()[0].failures == 0


def test_a_queue_that_only_one_message_asked_for_is_that_messages_fault(transport):
    """AS-09: a hostile address is a name that does not exist."""
    fill(transport, 1)
    run(transport, PlainTransformer(queue="'; DROP TABLE orders;--"))
    (stored,) = headers(transport, "error")
    assert stored[wire.EXCEPTION_TYPE].endswith("QueueNotFoundError")
    assert transport.peek("orders") == 0


def test_two_messages_with_one_id_both_reach_the_error_queue(transport):
    twin = new_message("1")
    transport.send("orders", OutgoingMessage(twin.body, twin.headers))
    transport.send("orders", OutgoingMessage(twin.body, twin.headers))
    run(transport, PlainTransformer(poisoned_by(b"1")))
    assert bodies(transport, "error") == [1, 1]


def test_spark_that_dies_on_a_batch_ends_the_run_and_counts(transport):
    fill(transport, 4)

    class Gone(Exception):
        pass

    Gone.__module__ = "grpc"

    def die(messages):
        raise Gone("connection refused")

    transformer = PlainTransformer(die)
    transformer.is_there = False
    ended, _ = run(transport, transformer)
    assert "Spark went away while it worked on 4 messages" in str(ended.failure)
    assert [(claim.owner, claim.failures) for claim in transport.claims.list()] == [(None, 1)]
    transformer.work, transformer.is_there = (lambda messages: None), True
    run(transport, transformer)
    assert bodies(transport, "billing") == list(range(4))


@pytest.mark.parametrize("poison", [[], [0], [3, 7]])
def test_unreliable_messages_that_fail_go_to_the_error_queue_and_are_not_tried_again(transport, poison):
    """TT-03, TT-08: in the mode `none` the error queue is all that is left."""
    fill(transport, 9)
    transformer = PlainTransformer(poisoned_by(*(str(n).encode() for n in poison)))
    run(transport, transformer, declare(transaction_mode="unreliable", recoverability=Recoverability()))
    assert bodies(transport, "error") == poison
    assert bodies(transport, "billing") == [n for n in range(9) if n not in poison]
    assert [transformer.alone[str(n).encode()] for n in poison] == [1] * len(poison)
    assert transport.claims.list() == []


def test_a_policy_that_fails_is_critical_and_the_message_is_tried_again(transport, caplog, monkeypatch):
    """TT-07: with the reference's words; nothing is lost."""
    fill(transport, 1)
    (shown,) = transport.show("orders", 1)
    recovery = Recovery(declare(), transport, PlainTransformer(poisoned_by(b"0")))
    monkeypatch.setattr(transport.claims, "fail", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        recovery.attempt(transport.claim("orders", "me", 10))
    assert f"Failed to execute recoverability policy for message with native ID: `{shown.id}`" in caplog.text
    assert [record.levelname for record in caplog.records if "recoverability" in record.message] == ["CRITICAL"]
    monkeypatch.undo()
    transport.claims.release_owner("me")
    run(transport, PlainTransformer())
    assert bodies(transport, "billing") == [0]


def test_errors_after_the_run_was_stopped_are_no_failures(transport):
    """TT-24, TT-25: cancelling is not failing."""
    fill(transport, 2)
    recovery = Recovery(declare(), transport, PlainTransformer(poisoned_by(b"0")))
    recovery.stop()
    with pytest.raises(Poisoned):
        recovery.attempt(transport.claim("orders", "me", 10))
    assert [claim.failures for claim in transport.claims.list()] == [0]


def test_a_pipeline_that_fails_is_limited_and_counts_in_the_database(transport):
    fill(transport, 1)
    policy = Recoverability(immediate_retries=4, delayed_retries=0, rate_limit_after=3, rate_limit_seconds=0.01)
    pipeline = declare(recoverability=policy)
    recovery, limited = Recovery(pipeline, transport, PlainTransformer(poisoned_by(b"0"))), []
    Drain(
        pipeline, transport, "run 1", recovery.attempt, slots=1, limit=recovery.limit,
        on_attempt=lambda _: limited.append(recovery.limit.is_on),
    ).run()  # fmt: skip
    assert limited == [False, False, True, True, True]
    (count,) = transport.failures.list().values()
    assert (count.failures, count.last_error) == (5, "Poisoned: 0 is poison")


def test_a_limited_pipeline_works_on_one_batch_at_a_time_until_one_succeeds(transport):
    """What other receivers counted counts here too, and the first success lets all of them go on as before."""
    fill(transport, 7)
    address = transport.resolve("orders").canonical
    for _ in range(3):
        transport.failures.add(address, "ValueError: elsewhere")
    policy = Recoverability(rate_limit_after=3, rate_limit_seconds=0.01)
    pipeline = declare(batch_messages=1, max_concurrency=3, recoverability=policy)
    together, seen = threading.Barrier(3), []

    def work(messages):
        if not seen:
            assert recovery.limit.is_on
            seen.append(sum(1 for one in transport.claims.list() if one.owner))
        elif not together.broken:
            together.wait(timeout=20)
            together.abort()

    def tolerant(messages):
        with contextlib.suppress(threading.BrokenBarrierError):
            work(messages)

    recovery = Recovery(pipeline, transport, PlainTransformer(tolerant))
    Drain(pipeline, transport, "run 1", recovery.attempt, slots=3, limit=recovery.limit).run()
    assert seen == [1]
    assert bodies(transport, "billing") == list(range(7))
    assert not recovery.limit.is_on
    assert transport.failures.list() == {}
