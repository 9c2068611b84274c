"""What the reference asserts of failing handlers and its error callback, in every mode that has retries."""

import threading

import pytest

from queue_pipeline.errors import ClaimLostError, DatabaseError
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.transport import new_message
from queue_pipeline.transport.claims.outbox import Outbox
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer, poisoned_by
from queue_pipeline_tests.support.processing.recovering import run, succeed_once
from queue_pipeline_tests.support.waiting import eventually

ONE_RETRY = Recoverability(immediate_retries=1, delayed_retries=0)


@pytest.fixture(params=["receive_only", "sends_atomic_with_receive", "transaction_scope"])
def mode(request):
    return request.param


def declare(mode, **options):
    given = {"name": "orders", "input_queue": "orders", "transform": lambda m: m, "linger_seconds": 0}
    return QueuePipeline(
        **{**given, "peek_delay": 0.1, "recoverability": ONE_RETRY, "transaction_mode": mode, **options}
    )


def drain(transport, transformer, pipeline):
    return run(transport, transformer, pipeline, slots=1)[0]


class Remembering(PlainTransformer):
    """Keeps the headers of each attempt as they reached the transform, and then changes its own copy of them."""

    def __init__(self, work):
        super().__init__(work)
        self.seen = []

    def transform(self, batch, sending):
        texts = batch.messages["headers"].to_pylist()
        self.seen.append(list(texts))
        for at, text in enumerate(texts):
            texts[at] = wire.encode({**wire.decode(text), "changed": "by the transform"})
        return super().transform(batch, sending)


def test_the_headers_of_every_attempt_and_of_the_error_are_those_that_were_stored(transport, mode):
    """TT-11, TT-12, TT-13: what the transform or the recovery did to headers is not seen afterwards."""
    transport.send("orders", new_message("1", headers={"own": "as it was"}))
    (stored,) = transport.show("orders")
    transformer = Remembering(poisoned_by(b"1"))
    drain(transport, transformer, declare(mode))
    assert len(transformer.seen) == 2
    assert [wire.decode(texts[0]) for texts in transformer.seen] == [stored.headers] * 2
    (failed,) = transport.show("error")
    assert {name: failed.headers[name] for name in stored.headers} == stored.headers
    assert "changed" not in failed.headers


class Telling(ValueError):
    """An exception that carries what its raiser knew."""

    def __init__(self):
        super().__init__("no stock")
        self.data = {"article": "PEN", "wanted": 7}


def test_what_the_transform_knew_reaches_the_error_queue(transport, mode):
    """TT-14: data that was attached to the exception is reported with it."""
    transport.send("orders", new_message("1"))

    def work(bodies):
        if bodies:
            raise Telling

    drain(transport, PlainTransformer(work), declare(mode))
    (failed,) = transport.show("error")
    assert failed.headers[wire.EXCEPTION_DATA_PREFIX + "article"] == "PEN"
    assert failed.headers[wire.EXCEPTION_DATA_PREFIX + "wanted"] == "7"


def test_what_is_sent_for_a_failure_arrives_and_what_was_sent_before_it_does_not(transport, mode):
    """TT-08, TT-09: the error copy is delivered with the end of the message; results of failed attempts are not."""
    transport.send("orders", [new_message("1"), new_message("2")])
    drain(transport, PlainTransformer(poisoned_by(b"1")), declare(mode))
    assert [shown.body for shown in transport.show("billing")] == [b"2"]
    assert [shown.body for shown in transport.show("error")] == [b"1"]
    assert (transport.peek("orders"), transport.claims.list()) == (0, [])


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failure_of_the_completion_counts_as_an_attempt(transport, mode, failing, monkeypatch):
    """TT-28, TT-29: it reaches the policy like any other, and the second one ends the message's retries."""
    transport.send("orders", new_message("1"))
    left, clear = [failing], Outbox.clear

    def fail_first(*arguments):
        if left[0]:
            left[0] -= 1
            raise DatabaseError("the commit failed")
        clear(*arguments)

    monkeypatch.setattr(Outbox, "clear", fail_first)
    transformer = PlainTransformer()
    drain(transport, transformer, declare(mode))
    assert transformer.calls == [1, 1]
    assert transport.peek("error") == (1 if failing == 2 else 0)
    if failing == 2:
        (failed,) = transport.show("error")
        assert failed.headers[wire.EXCEPTION_MESSAGE] == "the commit failed"
    if mode != "receive_only":
        assert transport.peek("billing") == (0 if failing == 2 else 1)


def test_a_run_that_is_stopped_finishes_its_current_recovery(transport, mode, monkeypatch):
    """TT-21: stopping waits for a failure that is being handled."""
    transport.send("orders", [new_message("1"), new_message("2")])
    pipeline = declare(mode, batch_messages=1, recoverability=Recoverability(immediate_retries=0, delayed_retries=0))
    recovery = Recovery(pipeline, transport, PlainTransformer(poisoned_by(b"1")))
    succeed_once(recovery)
    give_up = recovery.processor.give_up

    def slow(*arguments):
        transport.pauses.pause("orders", "operator")
        threading.Event().wait(1.2)
        return give_up(*arguments)

    monkeypatch.setattr(recovery.processor, "give_up", slow)
    ended = PipelineRun(pipeline, transport, "run 1", recovery, slots=1).run()
    assert ended.reason == "the pipeline is paused"
    assert [shown.body for shown in transport.show("error")] == [b"1"]
    assert transport.peek("orders") == 1


class Terminated(BaseException):
    """What Dagster raises in a run that is terminated: no Exception."""


def test_the_current_recovery_of_a_terminated_run_has_no_effect(transport, mode, monkeypatch):
    """TT-23: a failure that was being handled is handled by the next run, which knows it, and not by this one."""
    transport.send("orders", [new_message("1"), new_message("2")])
    pipeline = declare(mode, batch_messages=1, recoverability=Recoverability(immediate_retries=0, delayed_retries=0))
    recovery = Recovery(pipeline, transport, PlainTransformer(poisoned_by(b"1")))
    succeed_once(recovery)
    give_up, seeing_to, released, outcome = recovery.processor.give_up, threading.Event(), threading.Event(), []

    def slow(*arguments):
        seeing_to.set()
        released.wait(20)
        try:
            return give_up(*arguments)
        except ClaimLostError as error:
            outcome.append(error)
            raise

    def terminate(attempted):
        seeing_to.wait(20)
        raise Terminated

    monkeypatch.setattr(recovery.processor, "give_up", slow)
    running = PipelineRun(pipeline, transport, "run 1", recovery, slots=2, on_attempt=terminate)
    with pytest.raises(Terminated):
        running.run()
    released.set()
    eventually(lambda: outcome)
    assert transport.peek("error") == 0
    assert [claim.owner for claim in transport.claims.list()] == [None]
    monkeypatch.undo()
    drain(transport, PlainTransformer(), pipeline)
    assert [shown.body for shown in transport.show("billing")] == [b"2"]
    (failed,) = transport.show("error")
    assert failed.body == b"1"
    assert "1 is poison" in failed.headers[wire.EXCEPTION_MESSAGE]
