"""What becomes of a batch that failed, whatever was counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.failures.decision import (
    LEAST_DEATHS,
    AfterDeath,
    Step,
    after_abandonment,
    after_death,
    after_failure,
    after_unreliable_failure,
)

policies = st.builds(Recoverability, immediate_retries=st.integers(0, 10))
failures = st.integers(1, 50)
several = st.integers(2, 10**6)
USUAL = Recoverability()


@given(policies, several, failures, st.booleans(), st.booleans())
def test_several_messages_are_split_whatever_failed(policy, messages, failed, unrecoverable, kills):
    assert after_failure(policy, messages, failed, unrecoverable=unrecoverable, kills=kills) is Step.SPLIT
    assert after_abandonment(policy, messages, failed, isolated=kills) is Step.SPLIT
    assert after_unreliable_failure(messages, fails_for_all=False) is Step.SPLIT


@given(policies)
def test_a_message_alone_is_tried_as_often_as_the_policy_says(policy):
    tries = next(n for n in range(1, 50) if after_failure(policy, 1, n) is Step.GIVE_UP)
    assert tries == policy.immediate_retries + 1


@given(policies, failures)
def test_an_error_that_no_retry_fixes_is_tried_once(policy, failed):
    assert after_failure(policy, 1, failed, unrecoverable=True) is Step.GIVE_UP


@given(policies, failures, st.booleans())
def test_one_death_is_never_enough_to_give_a_message_up(policy, failed, unrecoverable):
    step = after_failure(policy, 1, failed, unrecoverable=unrecoverable, kills=True)
    assert (step is Step.GIVE_UP) == (failed >= LEAST_DEATHS and (unrecoverable or failed > policy.immediate_retries))


@given(policies, failures, st.booleans())
def test_a_message_that_failed_elsewhere_is_tried_as_long_as_it_would_be_here(policy, failed, isolated):
    here = after_failure(policy, 1, failed, kills=isolated)
    elsewhere = after_abandonment(policy, 1, failed, isolated=isolated)
    assert elsewhere is (None if here is Step.RETRY else Step.GIVE_UP)


@given(policies, st.sets(st.integers(0, 199)))
def test_messages_that_always_fail_are_given_up_alone_and_all_others_succeed(policy, poison):
    given_up, succeeded, left = set(), set(), [(range(200), 0)]
    while left:
        batch, failed = left.pop()
        if not poison & set(batch):
            succeeded |= set(batch)
            continue
        step = after_failure(policy, len(batch), failed + 1)
        if step is Step.SPLIT:
            # A half starts with no failures of its own.
            middle = len(batch) // 2
            left += [(batch[:middle], 0), (batch[middle:], 0)]
        elif step is Step.RETRY:
            left.append((batch, failed + 1))
        else:
            given_up |= set(batch)
    assert (given_up, succeeded) == (poison, set(range(200)) - poison)


@given(st.booleans(), st.booleans(), st.booleans())
def test_a_death_is_counted_on_an_isolated_batch_only(isolated, is_gone, can_restart):
    after = after_death(isolated=isolated, is_gone=is_gone, can_restart=can_restart)
    assert (after in (AfterDeath.ISOLATE, AfterDeath.ISOLATE_AND_END)) == (not isolated)


@given(st.booleans(), st.booleans(), st.booleans())
def test_a_run_ends_when_no_spark_is_left_that_it_could_use(isolated, is_gone, can_restart):
    after = after_death(isolated=isolated, is_gone=is_gone, can_restart=can_restart)
    ends = after in (AfterDeath.ISOLATE_AND_END, AfterDeath.COUNT_AND_END)
    assert ends == (is_gone and not (isolated and can_restart))


@pytest.mark.parametrize("messages", [0, 1])
def test_an_unreliable_message_alone_is_given_up_at_its_first_failure(messages):
    assert after_unreliable_failure(messages, fails_for_all=False) is Step.GIVE_UP


@given(st.integers(0, 10**6))
def test_unreliable_messages_that_all_fail_alike_are_given_up_together(messages):
    assert after_unreliable_failure(messages, fails_for_all=True) is Step.GIVE_UP


def test_the_usual_policy_tries_a_message_six_times_at_once():
    assert [after_failure(USUAL, 1, n) for n in (1, 5, 6, 7)] == [Step.RETRY, Step.RETRY, Step.GIVE_UP, Step.GIVE_UP]
