"""Failures that the next message would meet too: nothing is counted, and no message leaves its queue."""

import errno

import pytest

from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.errors import EverythingFailsError, TransformError
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import bodies, declare, fill, make_due, run

MOST_RUNS = 20
QUICK = Recoverability(immediate_retries=0, delayed_retries=0, rate_limit_after=None)


def wrong_for(is_bad, error=ValueError):
    """Work that fails on real messages of one kind, always in the same way."""

    def work(messages):
        bad = [body for body in messages if is_bad(int(body))]
        if bad:
            raise error(f"message {int(bad[0])} is of the old kind")

    return work


def kept(transport):
    """How many messages are still to be processed, and how many failures are counted on them."""
    claims = transport.claims.list()
    assert all(claim.owner is None for claim in claims)
    return transport.peek("orders", 100_000) + sum(one.messages for one in claims), sum(one.failures for one in claims)


def run_until_empty(transport, transformer, pipeline=None):
    """Runs of code that no message has succeeded with yet, until nothing is left; returns how many."""
    for number in range(1, MOST_RUNS + 1):
        ended, _ = run(transport, transformer, pipeline, proven=False)
        if ended.failure is None:
            return number
        assert isinstance(ended.failure, EverythingFailsError)
    raise AssertionError(f"still {kept(transport)} after {MOST_RUNS} runs: {ended.failure}")


@pytest.mark.parametrize("proven", [False, True])
@pytest.mark.parametrize("count", [6, 2_000])
def test_a_transform_that_is_wrong_for_every_real_message_keeps_them(transport, count, proven):
    fill(transport, count)
    transformer = PlainTransformer(wrong_for(lambda n: True))
    ended, _ = run(transport, transformer, proven=proven, slots=1)
    assert isinstance(ended.failure, EverythingFailsError)
    assert "is to blame: 6 different messages failed alone and alike" in str(ended.failure)
    assert (kept(transport), bodies(transport, "error")) == ((count, 0), [])
    assert len(transformer.calls) < 40
    (known,) = transport.failures.list().values()
    assert (known.failures, known.last_error.startswith("EverythingFailsError: ValueError: ")) == (1, True)


def test_runs_of_an_outage_neither_count_nor_move_a_message(transport):
    fill(transport, 60)
    transformer = PlainTransformer(wrong_for(lambda n: True))
    for number in range(1, 5):
        ended, _ = run(transport, transformer)
        assert isinstance(ended.failure, EverythingFailsError)
        assert [known.failures for known in transport.failures.list().values()] == [number]
    assert (kept(transport), bodies(transport, "error")) == ((60, 0), [])
    transformer.work = lambda messages: None
    run(transport, transformer)
    assert bodies(transport, "billing") == list(range(60))
    assert transport.failures.list() == {}


@pytest.mark.parametrize(("bad", "batch"), [(3, 1_000), (3, 1), (10, 7), (100, 1_000), (100, 7)])
def test_bad_messages_ahead_of_a_good_one_do_not_block_it(transport, bad, batch):
    """New code: the good message is processed, which shows that the bad ones are to blame."""
    fill(transport, bad + 1)
    transformer = PlainTransformer(wrong_for(lambda n: n < bad))
    runs = run_until_empty(transport, transformer, declare(batch_messages=batch, recoverability=QUICK))
    assert bodies(transport, "billing") == [bad]
    assert bodies(transport, "error") == list(range(bad))
    assert runs <= 6


def test_a_good_message_between_many_bad_ones_is_found(transport):
    fill(transport, 80)
    transformer = PlainTransformer(wrong_for(lambda n: n != 30))
    assert run_until_empty(transport, transformer, declare(recoverability=QUICK)) <= 6
    assert (bodies(transport, "billing"), len(bodies(transport, "error"))) == ([30], 79)


def test_one_bad_message_alone_waits_for_a_success_of_the_new_code(backend, transport):
    fill(transport, 1)
    policy = Recoverability(immediate_retries=0, delayed_retries=1)
    transformer, pipeline = PlainTransformer(wrong_for(lambda n: n == 0)), declare(recoverability=policy)
    ended, _ = run(transport, transformer, pipeline, proven=False)
    assert "no message has succeeded with this code and Spark yet" in str(ended.failure)
    assert (kept(transport), transformer.alone[b"0"]) == ((1, 0), 1)
    fill(transport, 1, start=1)
    assert run(transport, transformer, pipeline, proven=False)[0].failure is None
    assert (bodies(transport, "billing"), transport.status("orders")[0].delayed) == ([1], 1)
    # The success is known in the database: a run that meets nothing else blames the message now.
    make_due(backend, transport)
    assert run(transport, transformer, pipeline, proven=False)[0].failure is None
    assert bodies(transport, "error") == [0]


def test_an_error_that_names_what_it_did_not_find_counts_as_the_same_for_all_messages(transport):
    """A table of prices that was not loaded: the words differ, the type and the place do not."""
    fill(transport, 9)

    def work(messages):
        if messages:
            prices = {}
            prices["".join("ABCDEFGHI"[int(body)] for body in messages)]

    ended, _ = run(transport, PlainTransformer(work), proven=False)
    assert isinstance(ended.failure, EverythingFailsError)
    assert (kept(transport), bodies(transport, "error")) == ((9, 0), [])


def test_messages_that_fail_for_different_reasons_are_blamed(transport):
    fill(transport, 4)

    def work(messages):
        if messages:
            raise (KeyError, ValueError, TypeError, OSError)[int(messages[0])]("not like this")

    ended, _ = run(transport, PlainTransformer(work), proven=False)
    assert ended.failure is None
    assert bodies(transport, "error") == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [1, 1_000])
@pytest.mark.parametrize("error", [TransformError, ArithmeticError])
def test_a_transform_that_fails_without_messages_too_is_tried_once(transport, count, error):
    fill(transport, count)

    def broken(messages):
        raise error("no such columns")

    transformer = PlainTransformer(broken)
    ended, _ = run(transport, transformer)
    assert "is to blame: the transform fails in the same way without any message" in str(ended.failure)
    assert isinstance(ended.failure.__cause__, error)
    assert (kept(transport), transformer.calls, transport.peek("error")) == ((count, 0), [count], 0)


def test_an_outage_after_a_success_is_found_with_the_message_that_succeeded(transport):
    """A service goes down in the middle of a run: the probe is a message that was processed before."""
    fill(transport, 40)

    def work(messages):
        if messages and bodies(transport, "billing"):
            raise ConnectionRefusedError("the service is down")

    ended, attempts = run(transport, PlainTransformer(work), declare(batch_messages=10), slots=1)
    assert "is to blame: a message that was processed before fails now as well (ConnectionRefused" in str(ended.failure)
    assert (kept(transport), bodies(transport, "billing")) == ((30, 0), list(range(10)))
    assert [one.failure for one in attempts] == [None]


def test_after_a_success_bad_messages_are_counted_at_once(transport):
    fill(transport, 20)
    transformer = PlainTransformer(wrong_for(lambda n: n >= 10))
    ended, _ = run(transport, transformer, declare(batch_messages=10, recoverability=QUICK), slots=1)
    assert ended.failure is None
    assert bodies(transport, "error") == list(range(10, 20))
    assert set(transformer.alone.values()) == {1}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
def test_a_machine_without_space_or_files_counts_nothing(transport, number):
    fill(transport, 3)

    def full(messages):
        if messages:
            raise OSError(number, "not here")

    ended, attempts = run(transport, PlainTransformer(full))
    assert isinstance(ended.failure, OSError)
    assert (kept(transport), attempts) == ((3, 0), [])


def test_a_run_that_dies_while_messages_wait_for_their_verdict_counts_nothing(transport):
    fill(transport, 1)
    claim = transport.claim("orders", "died", 10)
    transport.claims.begin(claim)
    transport.claims.rest(claim, "ValueError: who knows")
    transport.claims.release_owner("died", died=True)
    assert [(one.failures, one.last_error) for one in transport.claims.list()] == [(0, "ValueError: who knows")]
