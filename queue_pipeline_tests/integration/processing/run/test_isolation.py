"""What kills Spark or a process is found without counting anything against the messages that were in work beside it."""

import threading

import pytest

from queue_pipeline.processing.declaration.recoverability import NO_RETRIES, Recoverability
from queue_pipeline.processing.errors import EverythingFailsError, SparkLostError
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.elapsed import end_leases
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import (
    AT_ONCE,
    THIS_CODE,
    bodies,
    declare,
    fill,
    headers,
    prove,
    run,
)


class Gone(Exception):
    """What a client of Spark raises when its server is gone."""


Gone.__module__ = "grpc"


class KilledSpark:
    """Stands for the Spark of a run, of which any batch with certain bodies is the end; see `RunSpark`."""

    can_restart = True

    def __init__(self, *killers):
        self.killers = set(killers)
        self.is_isolated = False
        self.transformer = PlainTransformer(self._work)

    def isolate(self, is_isolated):
        self.is_isolated = is_isolated

    def what_ended_it(self):
        return "it was killed (signal 9, SIGKILL)"

    def close(self):
        self.transformer.is_there = True

    def _work(self, messages):
        if not self.killers.isdisjoint(messages):
            self.transformer.is_there = False
        if not self.transformer.is_there:
            raise Gone("connection refused")


def run_on(transport, spark, pipeline=None, owner="run 1"):
    """One run on a Spark that is there at its start."""
    pipeline, spark.transformer.is_there = pipeline or declare(), True
    prove(transport)
    recovery = Recovery(pipeline, transport, spark.transformer, proof=THIS_CODE, spark=spark)
    return PipelineRun(pipeline, transport, owner, recovery, slots=pipeline.slots).run()


def state(transport):
    return [(one.messages, one.failures, one.isolated) for one in transport.claims.list()]


# --- a process that died ---------------------------------------------------------------------------------------------


def test_what_was_in_work_when_a_process_died_is_isolated_and_not_counted(transport):
    """Any of its batches may have ended it; what it had not begun was no part of that."""
    fill(transport, 6)
    claims = [transport.claim("orders", "died", 2) for _ in range(3)]
    for claim in claims[:2]:
        transport.claims.begin(claim)
    released = transport.claims.release_owner("died", died=True)
    assert {claim.first_row_version: claim.isolated for claim in released} == {
        claim.first_row_version: claim is not claims[2] for claim in claims
    }
    assert state(transport) == [(2, 0, True), (2, 0, True), (2, 0, False)]
    assert [one.last_error for one in transport.claims.list()] == ["died ended while it worked"] * 2 + [None]


def test_a_run_that_was_cancelled_isolates_nothing(transport):
    fill(transport, 2)
    transport.claims.begin(transport.claim("orders", "cancelled", 2))
    transport.claims.release_owner("cancelled")
    assert state(transport) == [(2, 0, False)]


@pytest.mark.parametrize("end", ["released", "taken over", "adopted"])
def test_a_death_is_counted_once_the_claim_is_isolated(transport, backend, end):
    fill(transport, 2)
    for number in range(3):
        claim = transport.claim("orders", f"run {number}", 2)
        assert (claim.isolated, claim.failures) == (number > 0, max(0, number - 1))
        transport.claims.begin(claim)
        if end == "released":
            transport.claims.release(claim, died=True)
        elif end == "taken over":
            end_leases(backend, transport, claim.owner)
        else:
            transport.claims.release(transport.claims.adopt(claim, "another"))
    assert transport.claim("orders", "last", 2).failures == 2


def test_parts_of_an_isolated_claim_are_isolated(transport):
    fill(transport, 4)
    claim, _ = transport.claims.isolate(transport.claim("orders", "me", 4), "Spark died")
    assert claim.isolated
    first, second = transport.claims.split(claim, 2)
    assert (first.isolated, second.isolated) == (True, True)
    assert state(transport) == [(2, 0, True), (2, 0, True)]
    transport.claims.release(second)
    assert transport.claims.adopt(second, "another").isolated


def test_a_message_that_kills_every_process_goes_to_the_error_queue(transport):
    fill(transport, 1)
    for number in range(1 + AT_ONCE.attempts):
        claim = transport.claim("orders", f"run {number}", 10)
        assert claim.failures == max(0, number - 1)
        transport.claims.begin(claim)
        transport.claims.release_owner(f"run {number}", died=True)
    transformer = PlainTransformer()
    run(transport, transformer)
    assert transformer.calls == []
    (stored,) = headers(transport, "error")
    assert stored[wire.EXCEPTION_TYPE].endswith("AbandonedError")
    assert "run 3 ended while it worked" in stored[wire.EXCEPTION_MESSAGE]
    assert bodies(transport, "error") == [0]


def test_one_death_fails_no_message_even_without_retries(transport):
    """A restart of the machine kills any run, also one that has an innocent message alone."""
    fill(transport, 1)
    for owner in ("killed", "killed again"):
        claim = transport.claim("orders", owner, 1)
        transport.claims.begin(claim)
        transport.claims.release_owner(owner, died=True)
    assert state(transport) == [(1, 1, True)]
    ended, _ = run(transport, PlainTransformer(), declare(recoverability=NO_RETRIES))
    assert ended.failure is None
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0], [])


def test_an_isolated_batch_whose_holder_died_is_halved(transport):
    fill(transport, 8)
    for owner in ("one", "two"):
        transport.claims.begin(transport.claim("orders", owner, 10))
        transport.claims.release_owner(owner, died=True)
    transformer = PlainTransformer()
    run(transport, transformer, slots=1)
    assert transformer.calls == [4, 4]
    assert bodies(transport, "billing") == list(range(8))


def test_a_death_after_the_failure_was_counted_does_not_count_it_again(transport):
    fill(transport, 1)
    claim = transport.claim("orders", "died", 10)
    transport.claims.begin(claim)
    transport.claims.fail(claim, "ValueError: no")
    transport.claims.release_owner("died", died=True)
    assert state(transport) == [(1, 1, False)]


# --- a Spark that died -----------------------------------------------------------------------------------------------


def test_a_spark_that_dies_beside_others_ends_the_run_and_counts_nothing(transport):
    fill(transport, 4)
    spark = KilledSpark(b"2")
    ended = run_on(transport, spark)
    assert isinstance(ended.failure, SparkLostError)
    assert "Nothing was counted; the next run tries these messages alone" in str(ended.failure)
    assert state(transport) == [(4, 0, True)]
    assert "it was killed (signal 9, SIGKILL)" in transport.claims.list()[0].last_error


def test_the_killer_alone_goes_to_the_error_queue_and_its_copy_says_what_killed(transport):
    fill(transport, 8)
    spark, pipeline = KilledSpark(b"5"), declare(batch_messages=4, max_concurrency=2)
    assert isinstance(run_on(transport, spark, pipeline).failure, SparkLostError)
    assert run_on(transport, spark, pipeline, "run 2").failure is None
    assert (bodies(transport, "error"), bodies(transport, "billing")) == ([5], [0, 1, 2, 3, 4, 6, 7])
    (stored,) = headers(transport, "error")
    assert stored[wire.EXCEPTION_TYPE].endswith("SparkKilledError")
    assert "and on nothing else: it was killed (signal 9, SIGKILL)" in stored[wire.EXCEPTION_MESSAGE]
    assert spark.transformer.alone[b"5"] == AT_ONCE.attempts
    assert transport.claims.list() == []


def test_a_killer_is_not_delayed_because_it_would_return_among_other_messages(transport):
    fill(transport, 1)
    policy = Recoverability(immediate_retries=1, delayed_retries=3)
    spark, pipeline = KilledSpark(b"0"), declare(recoverability=policy)
    run_on(transport, spark, pipeline)
    assert run_on(transport, spark, pipeline, "run 2").failure is None
    assert (bodies(transport, "error"), spark.transformer.alone[b"0"]) == ([0], 3)


def test_a_spark_that_every_message_kills_blames_no_message(transport):
    """Also on a Spark of its own."""
    fill(transport, 3)
    spark = KilledSpark(b"0", b"1", b"2")
    run_on(transport, spark)
    spark.close = lambda: None
    assert isinstance(run_on(transport, spark, owner="run 2").failure, EverythingFailsError)
    assert state(transport) == [(1, 0, True)] * 3


def test_where_spark_cannot_be_restarted_the_death_is_counted_and_the_next_run_continues(transport):
    fill(transport, 2)
    spark = KilledSpark(b"1")
    spark.can_restart = False
    counts = []
    for number in range(4):
        assert isinstance(run_on(transport, spark, owner=f"run {number}").failure, SparkLostError)
        counts.append(state(transport))
    assert counts[:3] == [[(2, 0, True)], [(2, 1, True)], [(1, 1, True)]]
    while state(transport):
        run_on(transport, spark, owner=f"run {len(counts)}")
        counts.append(state(transport))
        assert len(counts) < 10
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0], [1])


def test_an_isolated_batch_is_alone_in_its_run(transport):
    """It waits until what is in work has ended, and nothing is begun beside it."""
    fill(transport, 12)
    claims = [transport.claim("orders", "died", 2) for _ in range(3)]
    transport.claims.begin(claims[1])
    transport.claims.release_owner("died", died=True)
    lock, in_work, seen = threading.Lock(), [], []

    def work(messages):
        with lock:
            in_work.append(messages)
            seen.append([len(in_work), [int(one) for one in messages]])
        wait_for_others.wait(0.05)
        with lock:
            in_work.remove(messages)

    wait_for_others = threading.Event()
    run(transport, PlainTransformer(work), declare(batch_messages=2, max_concurrency=3))
    assert bodies(transport, "billing") == list(range(12))
    at = next(number for number, (_, messages) in enumerate(seen) if messages == [2, 3])
    assert seen[at][0] == 1
    assert at + 1 == len(seen) or seen[at + 1][0] == 1
