"""Who is to blame for a failure: the decision, whatever is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.processing.failures.verdict import MOST_DOUBLINGS, Evidence, Probe, Verdict, judge, tries

WORKS = (Probe.SAMPLE_WORKS, Probe.EMPTY_WORKS)
limits = st.integers(1, 20)
counts = st.integers(1, 500)
in_a_row = st.integers(0, 1_000)
evidences = st.builds(
    Evidence,
    probe=st.sampled_from(list(Probe)),
    alike=counts,
    causes=st.integers(1, 50),
    is_proven=st.booleans(),
    is_last=st.booleans(),
)


@given(evidences, limits, in_a_row)
def test_a_probe_that_fails_clears_every_message(evidence, limit, failures):
    if evidence.probe not in WORKS:
        assert judge(evidence, limit, failures) is Verdict.ENVIRONMENT


@given(evidences, limits, in_a_row)
def test_a_message_is_blamed_only_after_a_success_or_for_causes_that_differ(evidence, limit, failures):
    if judge(evidence, limit, failures) is Verdict.MESSAGE:
        is_known_to_work = evidence.probe is Probe.SAMPLE_WORKS or (evidence.is_last and evidence.is_proven)
        assert is_known_to_work or evidence.causes >= limit


@given(evidences, limits, in_a_row)
def test_many_equal_failures_without_a_success_are_never_blamed_on_messages(evidence, limit, failures):
    if evidence.probe is not Probe.SAMPLE_WORKS and evidence.alike >= tries(limit, failures):
        assert judge(evidence, limit, failures) is Verdict.ENVIRONMENT


@given(evidences, limits, in_a_row)
def test_there_is_a_verdict_once_nothing_else_can_be_tried(evidence, limit, failures):
    verdict = judge(evidence, limit, failures)
    assert verdict is not Verdict.UNKNOWN or not evidence.is_last


@given(evidences, limits, in_a_row)
def test_a_message_that_succeeded_before_and_works_now_decides_alone(evidence, limit, failures):
    if evidence.probe is Probe.SAMPLE_WORKS:
        assert judge(evidence, limit, failures) is Verdict.MESSAGE


@given(limits, in_a_row)
def test_each_failed_run_lets_the_next_one_try_twice_as_many_up_to_a_limit(limit, failures):
    most = limit * 2 ** (1 + MOST_DOUBLINGS)
    assert 2 * limit <= tries(limit, failures) <= most
    assert tries(limit, failures + 1) in (2 * tries(limit, failures), most)


@pytest.mark.parametrize(
    ("alike", "causes", "proven", "last", "verdict"),
    [
        (1, 1, False, False, Verdict.UNKNOWN),
        (1, 1, True, False, Verdict.UNKNOWN),
        (1, 1, True, True, Verdict.MESSAGE),
        (1, 1, False, True, Verdict.ENVIRONMENT),
        (2, 1, True, True, Verdict.MESSAGE),
        (3, 1, True, True, Verdict.ENVIRONMENT),
        (3, 1, True, False, Verdict.UNKNOWN),
        (5, 1, True, False, Verdict.UNKNOWN),
        (6, 1, True, False, Verdict.ENVIRONMENT),
        (1, 3, False, False, Verdict.MESSAGE),
        (3, 3, False, False, Verdict.UNKNOWN),
    ],
)
def test_without_a_sample_the_messages_that_failed_alone_are_compared(alike, causes, proven, last, verdict):
    assert judge(Evidence(Probe.EMPTY_WORKS, alike, causes, proven, last), 3, 0) is verdict
