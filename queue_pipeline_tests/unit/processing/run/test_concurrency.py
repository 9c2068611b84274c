from math import ceil

from hypothesis import given, settings
from hypothesis import strategies as st

from queue_pipeline.processing.run.concurrency import (
    FAILURES_TO_SHRINK,
    SUCCESSES_TO_GROW,
    Demand,
    RampUp,
    fixed,
    learn,
    pending,
    share,
    slots_to_start,
)

policies = st.sampled_from(["pending", "ramp_up", "fixed"])
demands = st.builds(
    Demand,
    waiting=st.integers(0, 5_000),
    capped=st.booleans(),
    in_flight=st.integers(0, 80),
    batch_messages=st.integers(1, 2_000),
    max_concurrency=st.integers(1, 64),
)
memories = st.builds(RampUp, st.integers(0, 5), st.integers(0, 5), st.integers(1, 64))


def demand(waiting=1, *, capped=False, in_flight=0, batch=100, most=8):
    return Demand(waiting, capped, in_flight, batch, most)


def after(memory, *waitings, most=8):
    for waiting in waitings:
        memory = learn(memory, demand(waiting, most=most))
    return memory


@settings(deadline=None)
@given(policies, demands, memories)
def test_no_policy_starts_more_than_the_free_slots(policy, wanted, memory):
    count, _ = slots_to_start(policy, wanted, memory)
    assert 0 <= count <= wanted.room


@settings(deadline=None)
@given(policies, demands, memories)
def test_nothing_is_started_when_nothing_waits(policy, wanted, memory):
    nothing = Demand(0, False, wanted.in_flight, wanted.batch_messages, wanted.max_concurrency)
    assert slots_to_start(policy, nothing, memory)[0] == 0


@settings(deadline=None)
@given(
    policies,
    st.integers(1, 16),
    st.integers(1, 200),
    st.lists(st.tuples(st.integers(0, 3_000), st.booleans(), st.integers(0, 16)), max_size=60),
)
def test_no_sequence_of_peeks_ever_has_more_than_the_maximum_in_flight(policy, most, batch, peeks):
    in_flight, memory = 0, RampUp()
    for waiting, capped, ended in peeks:
        in_flight -= min(in_flight, ended)
        count, memory = slots_to_start(policy, Demand(waiting, capped, in_flight, batch, most), memory)
        in_flight += count
        assert in_flight <= most
        assert 1 <= memory.slots <= most


@settings(deadline=None)
@given(policies, demands)
def test_a_run_is_started_when_messages_wait_and_no_receiver_is_at_work(policy, wanted):
    alone = Demand(max(1, wanted.waiting), wanted.capped, 0, wanted.batch_messages, wanted.max_concurrency)
    assert slots_to_start(policy, alone, RampUp())[0] >= 1


@settings(deadline=None)
@given(demands)
def test_pending_starts_one_receiver_for_each_batch_up_to_the_free_slots(wanted):
    batches = wanted.room if wanted.capped and wanted.waiting else ceil(wanted.waiting / wanted.batch_messages)
    assert pending(wanted) == min(batches, wanted.room)


def test_pending_uses_all_free_slots_for_a_count_that_hit_its_limit():
    assert pending(demand(1_000, capped=True, batch=1_000, in_flight=3)) == 5
    assert pending(demand(1_000, capped=False, batch=1_000, in_flight=3)) == 1


def test_fixed_uses_all_free_slots_for_a_single_message():
    assert fixed(demand(1, in_flight=2)) == 6
    assert fixed(demand(0, in_flight=2)) == 0


@settings(deadline=None)
@given(policies, memories)
def test_only_ramp_up_changes_what_is_remembered(policy, memory):
    _, kept = slots_to_start(policy, demand(10, most=64), memory)
    assert (kept == memory) == (policy != "ramp_up")


def test_ramp_up_starts_with_one_receiver_and_adds_one_after_more_than_three_successes_in_a_row():
    assert SUCCESSES_TO_GROW == 3
    memory, wanted = RampUp(), []
    for _ in range(9):
        _, memory = slots_to_start("ramp_up", demand(50), memory)
        wanted.append(memory.slots)
    assert wanted == [1, 1, 1, 2, 2, 2, 2, 3, 3]


def test_ramp_up_starts_only_the_receivers_that_are_missing():
    assert slots_to_start("ramp_up", demand(50, in_flight=2), RampUp(0, 0, 5))[0] == 3
    assert slots_to_start("ramp_up", demand(50, in_flight=5), RampUp(0, 0, 5))[0] == 0


def test_ramp_up_gives_up_a_receiver_after_more_than_three_empty_peeks_in_a_row_but_never_the_last():
    assert FAILURES_TO_SHRINK == 3
    assert after(RampUp(slots=3), 0, 0, 0).slots == 3
    assert after(RampUp(slots=3), 0, 0, 0, 0).slots == 2
    assert after(RampUp(slots=3), *[0] * 40).slots == 1


def test_an_empty_peek_resets_the_successes_and_a_full_one_the_failures():
    assert after(RampUp(), 9, 9, 9, 0) == RampUp(0, 1, 1)
    assert after(RampUp(), 9, 9, 9, 0, 9, 9, 9).slots == 1
    assert after(RampUp(slots=3), 0, 0, 0, 9) == RampUp(1, 0, 3)
    assert after(RampUp(slots=3), 0, 0, 0, 9, 0, 0, 0).slots == 3


def test_ramp_up_follows_a_maximum_that_was_lowered_or_raised_between_two_peeks():
    """TT-17, TT-18, TT-19: a changed declaration counts from the next peek on, the last one if there were several."""
    grown = after(RampUp(), *[9] * 40, most=8)
    assert grown.slots == 8
    assert learn(grown, demand(9, most=3)).slots == 3
    assert after(learn(grown, demand(9, most=3)), *[9] * 12, most=5).slots == 5
    assert [pending(demand(900, most=most, in_flight=4)) for most in (8, 3, 6)] == [4, 0, 2]


@settings(deadline=None)
@given(st.integers(0, 500), st.integers(1, 64))
def test_receivers_are_shared_out_over_full_runs_and_one_for_the_rest(slots, per_run):
    runs = share(slots, per_run)
    assert sum(runs) == slots
    assert all(run == per_run for run in runs[:-1])
    assert all(0 < run <= per_run for run in runs)
