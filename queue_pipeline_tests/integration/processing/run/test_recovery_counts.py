"""What counts as a failure and what does not, where it is counted, and what a failing pipeline does with it."""

import contextlib
import threading

import pytest

from queue_pipeline.errors import ClaimLostError, DatabaseUnavailableError, QueueNotFoundError
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer, Poisoned, poisoned_by
from queue_pipeline_tests.support.processing.recovering import AT_ONCE, THIS_CODE, bodies, declare, fill, prove, run


def test_failures_are_counted_where_another_process_finds_them(transport):
    """UT-16, UT-17, UT-18: the first failure, further ones with the last error, and none once it succeeded."""
    fill(transport, 1)
    claim = transport.claim("orders", "one", 10)
    failed, in_a_row = transport.claims.fail(claim, "ValueError: first")
    assert (failed.failures, in_a_row) == (1, 1)
    (status,) = transport.claims.list()
    assert (status.failures, status.last_error) == (1, "ValueError: first")
    failed, in_a_row = transport.claims.fail(failed, "ValueError: second")
    assert in_a_row == 2
    (status,) = transport.claims.list()
    assert (status.failures, status.last_error) == (2, "ValueError: second")
    address = transport.resolve("orders").canonical
    assert (transport.failures.list()[address].failures, transport.failures.list()[address].last_error) == (
        2,
        "ValueError: second",
    )
    transport.claims.release(failed)
    other = transport.claim("orders", "another", 10)
    assert (other.failures, other.generation) == (2, 2)
    with pytest.raises(ClaimLostError):
        transport.claims.fail(claim, "too late")
    transport.claims.complete(Completion(other, read=None))
    transport.failures.clear(address)
    assert (transport.claims.list(), transport.failures.list()) == ([], {})


def test_restarts_do_not_multiply_the_attempts(transport):
    """A run that ends after every attempt: the message is tried as often as by one run."""
    fill(transport, 1)
    transformer, pipeline = PlainTransformer(poisoned_by(b"0")), declare()
    for number in range(AT_ONCE.attempts):
        recovery = Recovery(pipeline, transport, transformer)
        recovery.judge.succeeded()
        claim = transport.claim("orders", f"run {number}", 10)
        assert claim.failures == number
        recovery.attempt(claim)
        (suspect,) = recovery.judge.succeeded()
        attempted = recovery.attempt(suspect)
        for again in attempted.again:
            transport.claims.release(again)
    assert transformer.alone[b"0"] == 3
    assert bodies(transport, "error") == [0]


def test_an_error_that_no_message_causes_ends_the_run_and_counts_nothing(transport):
    fill(transport, 4)

    def away(messages):
        raise DatabaseUnavailableError("gone")

    ended, _ = run(transport, PlainTransformer(away))
    assert isinstance(ended.failure, DatabaseUnavailableError)
    (claim,) = transport.claims.list()
    assert (claim.owner, claim.failures, claim.messages) == (None, 0, 4)


def test_a_missing_output_queue_is_not_the_fault_of_the_messages(transport):
    fill(transport, 4)
    pipeline = declare(output_queues=["nowhere"])
    ended, _ = run(transport, PlainTransformer(queue="nowhere"), pipeline)
    assert isinstance(ended.failure, QueueNotFoundError)
    assert transport.claims.list()[0].failures == 0


def test_a_policy_that_fails_is_critical_and_the_message_is_tried_again(transport, caplog, monkeypatch):
    """TT-07: with the reference's words; nothing is lost."""
    fill(transport, 1)
    (shown,) = transport.show("orders", 1)
    recovery = Recovery(declare(), transport, PlainTransformer(poisoned_by(b"0")))
    monkeypatch.setattr(transport.claims, "rest", lambda *_: 1 / 0)
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
    prove(transport)
    recovery, limited = Recovery(pipeline, transport, PlainTransformer(poisoned_by(b"0")), proof=THIS_CODE), []
    PipelineRun(
        pipeline, transport, "run 1", recovery, slots=1, on_attempt=lambda _: limited.append(recovery.limit.is_on)
    ).run()
    assert limited == [False, False, False, True, True, True]
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
    PipelineRun(pipeline, transport, "run 1", recovery, slots=3).run()
    assert seen == [1]
    assert bodies(transport, "billing") == list(range(7))
    assert not recovery.limit.is_on
    assert transport.failures.list() == {}
