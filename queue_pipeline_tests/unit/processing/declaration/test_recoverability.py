"""The decisions about failed messages, as functions of what was counted."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import (
    DelayedRetry,
    Recoverability,
    delayed_retry,
    retry_headers,
)
from queue_pipeline.processing.failures.decision import Step, after_failure
from queue_pipeline.transport.messages import headers as wire

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
USUAL = Recoverability()


def declare(**options):
    return QueuePipeline(name="orders", input_queue="orders", transform=lambda m: m, **options)


def test_the_usual_policy_is_the_reference():
    assert (USUAL.immediate_retries, USUAL.delayed_retries, USUAL.delayed_retry_seconds) == (5, 3, 10.0)
    assert USUAL.attempts == 24


def test_failed_runs_wait_longer_and_longer_up_to_a_limit():
    assert [USUAL.backoff.delay(failed - 1) for failed in (1, 2, 3, 4, 10_000)] == [0, 5, 10, 20, 300]
    assert Recoverability(backoff_seconds=600).backoff.delay(9) == 600


@given(st.integers(0, 8), st.integers(0, 8))
def test_a_message_is_tried_exactly_that_many_times_in_total(immediate, delayed):
    policy = Recoverability(immediate_retries=immediate, delayed_retries=delayed)
    attempts, headers = 0, {}
    while True:
        failures = 0
        while True:
            attempts, failures = attempts + 1, failures + 1
            if after_failure(policy, 1, failures) is Step.GIVE_UP:
                break
        retry = delayed_retry(policy, headers, NOW)
        if retry is None:
            break
        headers = retry_headers(headers, retry, NOW, "orders")
    assert attempts == policy.attempts == (immediate + 1) * (delayed + 1)


def test_each_wait_is_a_step_longer_than_the_one_before():
    found = [delayed_retry(USUAL, {wire.RETRIES: str(done)} if done else {}, NOW) for done in range(4)]
    assert found == [
        DelayedRetry(1, timedelta(seconds=10)),
        DelayedRetry(2, timedelta(seconds=20)),
        DelayedRetry(3, timedelta(seconds=30)),
        None,
    ]


def test_a_schedule_applies_unless_the_policy_has_waits_of_its_own():
    schedule = [5.0, 60.0]
    assert delayed_retry(USUAL, {wire.RETRIES: "1"}, NOW, schedule) == DelayedRetry(2, timedelta(seconds=60))
    assert delayed_retry(USUAL, {wire.RETRIES: "2"}, NOW, schedule) is None
    own = Recoverability(delayed_retries=1)
    assert delayed_retry(own, {}, NOW, schedule) == DelayedRetry(1, timedelta(seconds=10))
    assert delayed_retry(own, {wire.RETRIES: "1"}, NOW, schedule) is None


@pytest.mark.parametrize(
    ("age", "goes_on"), [(timedelta(hours=23, minutes=59), True), (timedelta(hours=24, seconds=1), False)]
)
def test_retrying_ends_a_day_after_the_last_retry(age, goes_on):
    headers = {wire.RETRIES: "1", wire.RETRIES_TIMESTAMP: wire.format_timestamp(NOW - age)}
    assert (delayed_retry(USUAL, headers, NOW) is not None) is goes_on


@pytest.mark.parametrize("text", ["", "-1", "many", "1.5", "²", "9" * 30])
def test_an_invalid_retry_count_counts_as_zero(text):
    assert delayed_retry(USUAL, {wire.RETRIES: text}, NOW).number == 1
    assert delayed_retry(USUAL, {wire.RETRIES_TIMESTAMP: "yesterday"}, NOW).number == 1


def test_the_headers_of_a_delayed_retry():
    headers = {wire.MESSAGE_ID: "m", "own": "kept", wire.RETRIES: "1", wire.RETRIES_TIMESTAMP: "old"}
    assert retry_headers(headers, DelayedRetry(2, timedelta(seconds=20)), NOW, '"public"."orders"') == {
        wire.MESSAGE_ID: "m",
        "own": "kept",
        wire.DELIVER_AT: "2024-05-01 12:00:20:000000 Z",
        wire.RETRIES: "2",
        wire.RETRIES_TIMESTAMP: "2024-05-01 12:00:00:000000 Z",
        wire.FORWARD_DESTINATION: '"public"."orders"',
    }


def test_the_first_delivery_time_is_kept():
    headers = {wire.DELIVER_AT: "2020-01-01 00:00:00:000000 Z"}
    assert retry_headers(headers, DelayedRetry(1, timedelta(seconds=10)), NOW, "q")[wire.DELIVER_AT].startswith("2020")


def test_unrecoverable_errors_are_given_as_classes_or_names():
    policy = Recoverability(unrecoverable=[KeyError, "shop.errors.Refused"])
    assert policy.unrecoverable == ("builtins.KeyError", "shop.errors.Refused")
    assert policy.is_unrecoverable(["builtins.KeyError", "KeyError", "builtins.LookupError"])
    assert not policy.is_unrecoverable(["builtins.ValueError"])


@pytest.mark.parametrize(("after", "failures", "limited"), [(3, 2, False), (3, 3, True), (None, 1_000, False)])
def test_the_rate_is_limited_after_n_failures_in_a_row(after, failures, limited):
    assert Recoverability(rate_limit_after=after).is_limited(failures) is limited


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"immediate_retries": -1}, "recoverability.immediate_retries"),
        ({"delayed_retries": 10**6}, "recoverability.delayed_retries"),
        ({"delayed_retry_seconds": 0}, "recoverability.delayed_retry_seconds"),
        ({"rate_limit_after": 0}, "recoverability.rate_limit_after"),
        ({"unrecoverable": [3]}, "recoverability.unrecoverable.0"),
        ({"retries": 3}, "recoverability.retries"),
    ],
)
def test_an_invalid_policy_is_refused_by_name(options, says):
    with pytest.raises(ConfigurationError, match="pipeline 'orders' cannot be loaded") as refused:
        declare(recoverability=options)
    assert says in str(refused.value)


@pytest.mark.parametrize("name", ["immediate_retries", "delayed_retries"])
def test_the_mode_unreliable_refuses_retries_when_it_is_declared(name):
    with pytest.raises(ConfigurationError, match=f"{name} with transaction_mode unreliable"):
        declare(transaction_mode="unreliable", recoverability=Recoverability(**{name: 1}))


def test_the_mode_unreliable_has_no_retries_by_default():
    for options in ({}, {"recoverability": Recoverability(immediate_retries=0, rate_limit_after=7)}):
        policy = declare(transaction_mode="unreliable", **options).retries
        assert (policy.immediate_retries, policy.delayed_retries, policy.attempts) == (0, 0, 1)
    assert policy.rate_limit_after == 7
    assert declare().retries == USUAL


def test_an_audit_time_to_live_needs_an_audit_queue():
    with pytest.raises(ConfigurationError, match="audit_time_to_live: there is no audit_queue"):
        declare(audit_time_to_live=60)
    assert declare(audit_queue="audit", audit_time_to_live=60).audit_time_to_live == 60
