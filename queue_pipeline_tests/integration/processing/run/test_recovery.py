"""What becomes of messages that fail, on real databases; the transform is plain Python, everything else is real."""

import math
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.errors import SparkUnavailableError
from queue_pipeline.processing.failures.decision import Step
from queue_pipeline.transport import OutgoingMessage, new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer, Poisoned, poisoned_by
from queue_pipeline_tests.support.processing.recovering import AT_ONCE, bodies, declare, fill, headers, make_due, run


def test_one_poison_message_fails_no_other(transport):
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
    assert "at queue_pipeline_tests.support.processing.plain_transformer" in stored[wire.EXCEPTION_STACK_TRACE]
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
    assert [one.step for one in attempts] == [Step.WAIT, Step.RETRY, Step.RETRY, Step.GIVE_UP]


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
    halvings, probes = len(poison) * rounds, len(poison) * (rounds + AT_ONCE.attempts)
    assert len(transformer.calls) <= 1 + 2 * halvings + len(poison) * AT_ONCE.immediate_retries + probes
    assert transport.claims.list() == []


def test_delayed_retries_come_back_later_and_restart_the_count(backend, transport):
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
    # The other calls are of one message: the one that fails, and a probe if the fresh ones were quicker.
    assert transformer.calls.count(50) == 1
    assert set(transformer.calls) == {1, 50}
    assert bodies(transport, "error") == [1]
    assert bodies(transport, "billing") == [0, 2, *range(10, 60)]


def test_a_message_whose_retrying_is_a_day_old_is_not_tried_later_again(transport):
    old = wire.format_timestamp(datetime.now(UTC) - timedelta(hours=25))
    transport.send("orders", new_message("1", headers={wire.RETRIES: "1", wire.RETRIES_TIMESTAMP: old}))
    run(transport, PlainTransformer(poisoned_by(b"1")), declare(recoverability=Recoverability(immediate_retries=0)))
    assert bodies(transport, "error") == [1]
    assert transport.status("orders")[0].delayed == 0


def test_an_unrecoverable_error_is_tried_once_and_fails_no_other_message(transport):
    fill(transport, 8)
    transformer = PlainTransformer(poisoned_by(b"5"))
    policy = Recoverability(unrecoverable=[Poisoned])
    run(transport, transformer, declare(recoverability=policy))
    assert transformer.alone[b"5"] == 1
    assert bodies(transport, "error") == [5]
    assert len(bodies(transport, "billing")) == 7


def test_messages_that_the_transform_refuses_fail_no_other(transport):
    fill(transport, 8)
    transformer = PlainTransformer()
    transformer.refuse = {b"2": "no", b"6": "never"}
    _, attempts = run(transport, transformer)
    assert transformer.calls == [8]
    assert bodies(transport, "error") == [2, 6]
    assert [report.sent for one in attempts for report in one.reports] == [6]


def test_poison_is_found_even_if_the_transform_fails_on_an_empty_batch(transport):
    fill(transport, 8)

    def touchy(messages):
        if not messages:
            raise IndexError("no first message")
        poisoned_by(b"2")(messages)

    ended, _ = run(transport, PlainTransformer(touchy))
    assert ended.failure is None
    assert bodies(transport, "error") == [2]
    assert len(bodies(transport, "billing")) == 7


def test_a_transform_that_fails_at_random_loses_and_duplicates_no_message(transport):
    """Thirty of a hundred calls fail, over 20,000 messages."""
    count, chance = 20_000, random.Random(4)
    fill(transport, count)

    def unsteady(messages):
        if chance.random() < 0.3:
            raise ConnectionError("not today")

    policy = Recoverability(immediate_retries=20, delayed_retries=0, rate_limit_after=None)
    for _ in range(20):
        # A probe may fail as well: then the next run goes on.
        ended, _ = run(transport, PlainTransformer(unsteady), declare(batch_messages=500, recoverability=policy))
        if ended.failure is None:
            break
    assert ended.failure is None
    assert bodies(transport, "billing") == list(range(count))
    assert (transport.peek("error"), transport.peek("orders"), transport.claims.list()) == (0, 0, [])
    ids = Counter(one[wire.MESSAGE_ID] for one in headers(transport, "billing"))
    assert set(ids.values()) == {1}


def test_a_missing_queue_that_only_one_message_names_fails_that_message(transport):
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


def test_unreliable_messages_are_not_all_taken_when_spark_is_unavailable(transport):
    """What was taken goes to the error queue, the rest is not taken."""
    fill(transport, 6)

    def away(messages):
        raise SparkUnavailableError("no Java")

    pipeline = declare(transaction_mode="unreliable", recoverability=Recoverability(), batch_messages=2)
    ended, _ = run(transport, PlainTransformer(away), pipeline, slots=1)
    assert isinstance(ended.failure, SparkUnavailableError)
    assert (bodies(transport, "error"), bodies(transport, "orders")) == ([0, 1], [2, 3, 4, 5])


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
