"""Nothing hangs forever: an attempt has an end, whatever a transform raises or waits for."""

import threading
import time

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.errors import BatchTimeoutError
from queue_pipeline.processing.run import pipeline_run as draining
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import bodies, declare, fill, headers, run
from queue_pipeline_tests.support.waiting import eventually

ONCE = Recoverability(immediate_retries=0, delayed_retries=0)


def run_on_spark(transport, spark, transform, **options):
    given = {"transform": transform, "output_queues": ["billing"], "recoverability": ONCE, "max_concurrency": 1}
    pipeline = declare(**{**given, **options})
    sessions = AttemptSessions(lambda: spark, pipeline.batch_seconds)
    return run(
        transport, SparkTransformer(pipeline, sessions), pipeline, executors=Executors(pipeline, transport, sessions)
    )


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_would_end_the_process_is_a_failure_of_the_message_that_raises_it(transport, spark, kind):
    def leave(messages):
        if any(row.body == b"2" for row in messages.select("body").collect()):
            raise kind
        return messages.select("origin", "body")

    fill(transport, 4)
    ended, _ = run_on_spark(transport, spark, leave)
    assert ended.reason == "the queue is empty"
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0, 1, 3], [2])
    (found,) = headers(transport, "error")
    assert f"the transform raised {kind.__name__}" in found[wire.EXCEPTION_MESSAGE]
    assert found[wire.INNER_EXCEPTION_TYPE] == f"builtins.{kind.__name__}"


@pytest.mark.parametrize("route", ["local", pytest.param("executors", marks=pytest.mark.slow)])
def test_a_function_that_never_returns_is_interrupted_and_its_message_given_up(postgresql, spark, route):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])

    def hang(messages):
        @F.udf(StringType())
        def body(text):
            while text == "1":
                time.sleep(0.05)
            return text

        return messages.select("origin", body(F.col("body").cast("string")).alias("body"))

    fill(transport, 2)
    ended, attempts = run_on_spark(transport, spark, hang, batch_seconds=15, batch_messages=1, route=route)
    assert ended.reason == "the queue is empty"
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0], [1])
    (found,) = headers(transport, "error")
    assert found[wire.EXCEPTION_TYPE].endswith(BatchTimeoutError.__name__)
    assert "did not end in batch_seconds (15 s)" in found[wire.EXCEPTION_MESSAGE]
    assert sum(attempt.failure is not None for attempt in attempts) == 1


@pytest.fixture
def impatient(monkeypatch):
    """Runs that leave an attempt behind after a second."""
    monkeypatch.setattr(draining, "HANG_GRACE_SECONDS", 0.5)
    return declare(batch_seconds=0.2, recoverability=ONCE, max_concurrency=1)


def test_an_attempt_that_does_not_return_is_left_behind_and_its_message_found(transport, impatient):
    """The batch is tried alone first, for Spark itself may hang; then it is counted, halved and given up."""
    returns, ended_late, left_behind = threading.Event(), [], 0

    def hang(found):
        if b"1" in found:
            returns.wait()
            ended_late.append(found)

    fill(transport, 2)
    ended, attempts = run(transport, PlainTransformer(hang), impatient)
    assert ended.failure is None
    assert [attempt.failure.error_type.rpartition(".")[2] for attempt in attempts] == ["BatchTimeoutError"]
    assert [(one.isolated, one.failures) for one in transport.claims.list()] == [(True, 0)]
    while "an attempt did not end in 0.9 s; the next run goes on" in ended.reason:
        left_behind += 1
        ended, _ = run(transport, PlainTransformer(hang), impatient)
    assert ended.reason == "the queue is empty"
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0], [1])
    (found,) = headers(transport, "error")
    assert "the attempt did not return" in found[wire.EXCEPTION_MESSAGE]
    # What the threads that were left behind complete now is refused: others have handled their messages.
    returns.set()
    eventually(lambda: len(ended_late) == left_behind)
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0], [1])
    assert transport.claims.list() == []


def test_while_every_attempt_hangs_no_message_goes_to_the_error_queue(transport, impatient):
    """A service that never answers, or a Spark: as long as no message succeeds, none is to blame."""
    answers = threading.Event()
    fill(transport, 3)
    try:
        for _ in range(4):
            transformer = PlainTransformer(lambda found: None if not found else (answers.wait(), None)[1])
            ended, _ = run(transport, transformer, impatient.model_copy(update={"batch_messages": 1}), proven=False)
            assert "an attempt did not end" in ended.reason
        assert (transport.peek("billing"), transport.peek("error")) == (0, 0)
        assert transport.peek("orders") + sum(one.messages for one in transport.claims.list()) == 3
    finally:
        answers.set()
