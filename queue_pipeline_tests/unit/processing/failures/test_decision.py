"""What becomes of a batch that failed, whatever was counted."""

from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.failures.decision import LEAST_DEATHS, Step, after_failure

policies = st.builds(Recoverability, immediate_retries=st.integers(0, 10))
failures = st.integers(1, 50)
several = st.integers(2, 10**6)
USUAL = Recoverability()


@given(policies, several, failures, st.booleans(), st.booleans())
def test_several_messages_are_split_whatever_failed(policy, messages, failed, unrecoverable, kills):
    assert after_failure(policy, messages, failed, unrecoverable=unrecoverable, kills=kills) is Step.SPLIT


@given(policies)
def test_a_message_alone_is_tried_as_often_as_the_policy_says(policy):
    tries = next(n for n in range(1, 50) if after_failure(policy, 1, n) is Step.GIVE_UP)
    assert tries == policy.immediate_retries + 1


@given(policies, failures)
def test_an_error_that_no_retry_fixes_is_tried_once(policy, failed):
    assert after_failure(policy, 1, failed, unrecoverable=True) is Step.GIVE_UP


@given(policies, failures, st.booleans())
def test_one_death_is_never_enough_to_fail_a_message(policy, failed, unrecoverable):
    step = after_failure(policy, 1, failed, unrecoverable=unrecoverable, kills=True)
    assert (step is Step.GIVE_UP) == (failed >= LEAST_DEATHS and (unrecoverable or failed > policy.immediate_retries))


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


def test_the_usual_policy_tries_a_message_six_times_at_once():
    assert [after_failure(USUAL, 1, n) for n in (1, 5, 6, 7)] == [Step.RETRY, Step.RETRY, Step.GIVE_UP, Step.GIVE_UP]
