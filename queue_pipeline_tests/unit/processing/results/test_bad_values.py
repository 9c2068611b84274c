"""A value that cannot be sent fails its message and no other, with a reason that names the field."""

import math
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.results.bad_values import check_span
from queue_pipeline.processing.results.sorting import REFUSED, ROW_VERSION, sort_outcomes
from queue_pipeline_tests.support.processing.outcome_tables import fail, message, publish, related, reply, send

DAY = 24 * 3600 * 1000


def sorted_out(outcome, typed=()):
    """A bad outcome between two good ones of its kind, and a good send of the same message."""
    rows = [(message(1), send()), (message(2), send(), outcome), (message(3), send())]
    return sort_outcomes(related(*rows), typed)


def the_reason(outcome, typed=()):
    found = sorted_out(outcome, typed)
    ((version, failure),) = found.failures.items()
    assert (version, failure.error_type) == (2, REFUSED)
    assert [part[ROW_VERSION].to_pylist() for part in found.sends] == [[1, 3]]
    return failure.message


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (send(body=None), "send to billing: body is null"),
        (reply(body=None), "reply: body is null"),
        (publish(body=None), "publish of Shop.A: body is null"),
        (send(None), "send: destination is null"),
        (send(""), "send: destination is empty"),
        ({"body": b"no destination at all"}, "send: destination is null"),
        (publish(None), "publish: event is null"),  # type: ignore[arg-type]
        (publish(""), "publish: event is empty"),
        (send(message_type=None), "send to billing: message_type is null, and none is declared"),
        (send(message_type=""), "send to billing: message_type is empty"),
        (reply(message_type=None), "reply: message_type is null"),
        (reply(code=None, body=None), "reply: code is null, and so is body"),
        (reply(code=1), "reply: has code and body; a reply is a message or a number"),
        (reply(code=2**31, body=None), "reply: code is 2147483648, over 32 bits"),
        (reply(code=-(2**31) - 1, body=None), "reply: code is -2147483649, over 32 bits"),
        (send(delay=1, time_to_live=1), "send to billing: has delay and time_to_live"),
        (
            send(time_to_live=0),
            "send to billing: time_to_live is 0 s; it has to be at least 0.001 s and at most 24 days",
        ),
        (send(time_to_live=-1), "time_to_live is -0.001 s"),
        (send(time_to_live=24 * DAY + 1), "time_to_live is 2.0736e+06 s"),
        (reply(time_to_live=2**62), "reply: time_to_live is 4.6"),
        (publish(time_to_live=-5), "publish of Shop.A: time_to_live is -0.005 s"),
        (send(delay=2**62), "send to billing: delay is 4.6"),
        (send(delay=-(2**62)), "delay is -4.6"),
    ],
)
def test_a_bad_value_fails_its_message_and_no_other(outcome, says):
    assert the_reason(outcome).startswith(says) or says in the_reason(outcome)


def test_a_declared_type_stands_for_one_that_is_null():
    found = sorted_out(send(message_type=None), ["billing"])
    assert (found.failures, [part.num_rows for part in found.sends]) == ({}, [3, 1])


@pytest.mark.parametrize(
    "outcome",
    [
        send(body=b""),
        reply(code=0, body=None),
        reply(code=2**31 - 1, body=None, message_type=None),
        send(delay=0),
        send(delay=-DAY),
        send(delay=365 * 100 * DAY),
        send(time_to_live=1),
        send(time_to_live=24 * DAY),
        send(delay=None, time_to_live=None),
        send(headers=[("Shop.A", None)]),
        send(ordinal=None),
        send(ordinal=2**40),
    ],
)
def test_valid_values_are_sent(outcome):
    found = sorted_out(outcome)
    assert (found.failures, [part.num_rows for part in found.sends]) == ({}, [3, 1])


def test_a_failure_keeps_its_own_reason():
    assert the_reason(send(None, body=None, error="mine")) == "mine"
    assert the_reason(fail("mine")) == "mine"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62)), min_size=1, max_size=20))
def test_every_lifetime_is_kept_as_given_or_refused(lifetimes):
    found = sort_outcomes(related(*((message(n), send(time_to_live=one)) for n, one in enumerate(lifetimes))))
    sent = {row[ROW_VERSION]: row["time_to_live"] for part in found.sends for row in part.to_pylist()}
    good = {n: one for n, one in enumerate(lifetimes) if one is None or 0 < one <= 24 * DAY}
    assert sent == good
    assert found.failures.keys() == set(range(len(lifetimes))) - good.keys()


@pytest.mark.parametrize("seconds", [-0.001, 0, 0.0004, math.nan, math.inf, -math.inf, 1e300, timedelta(days=25)])
def test_a_lifetime_that_is_wrong_for_all_messages_is_refused_where_it_is_written(seconds):
    with pytest.raises(ConfigurationError, match=r"^send: time_to_live is .* s; it has to be at least 0.001 s"):
        check_span("send", "time_to_live", seconds)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, 1e300, -1e300])
def test_a_delay_that_is_wrong_for_all_messages_is_refused_where_it_is_written(seconds):
    with pytest.raises(ConfigurationError, match=r"^send: delay is .* s; it has to be at most a hundred years"):
        check_span("send", "delay", seconds)


def test_valid_time_spans_are_accepted():
    for name, seconds in (("delay", 0), ("delay", -5), ("delay", timedelta(days=1)), ("time_to_live", 0.001)):
        check_span("send", name, seconds)
