"""Runs that the peek loop starts: waits after failures, limits, and the memory between ticks."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_pipeline.orchestration.peek_loop import (
    Cursor,
    Runs,
)
from queue_pipeline.processing.run.concurrency import RampUp
from queue_pipeline_tests.support.dagster.peek_world import World, pipeline


def test_the_wait_says_why_the_runs_failed():
    world = World(waiting={"orders": 5})
    world.working["orders"] = Runs(0, 3, world.time, failed_attempts=3, last_error="EverythingFailsError: no disk")
    assert world.tick(pipeline(), budget=2).said[0].endswith("5 messages wait. EverythingFailsError: no disk")


def test_the_pipeline_says_how_long_failed_runs_wait():
    world = World(waiting={"orders": 5})
    world.working["orders"] = Runs(0, 30, world.time - 20)
    slow = pipeline(recoverability={"backoff_seconds": 2, "longest_backoff_seconds": 60})
    assert "next try in 40 s" in world.tick(slow, budget=1).said[0]


def test_runs_that_failed_after_a_success_are_tried_again_at_once():
    """Each of them processed messages: a service that refuses now and then is not down."""
    world = World(waiting={"orders": 5})
    world.working["orders"] = Runs(0, 8, world.time, failed_attempts=1, last_error="ConnectionError: not now")
    assert len(world.tick(pipeline(), budget=2).starts) == 1


def test_one_failed_run_is_tried_again_at_once():
    world = World(waiting={"orders": 5})
    world.working["orders"] = Runs(0, 1, world.time)
    assert len(world.tick(pipeline()).starts) == 1


def test_with_all_slots_at_work_nothing_is_started_and_the_tick_says_so():
    world = World(waiting={"orders": 1_000}, working={"orders": Runs(2)}, capped=True)
    outcome = world.tick(pipeline(), budget=3)
    assert outcome.starts == ()
    assert outcome.said == ("orders: 1,000 or more messages wait, 2 slots in use",)


def test_receivers_on_other_machines_count_and_are_reported():
    world = World(waiting={"orders": 1_000}, working={"orders": Runs(2, elsewhere=2)})
    outcome = world.tick(pipeline(), budget=3)
    assert outcome.starts == ()
    assert outcome.said == ("orders: 1,000 messages wait, 2 slots in use, 2 of them on other machines",)
    world.working["orders"] = Runs(1, elsewhere=1)
    outcome = world.tick(pipeline())
    assert [start.slots for start in outcome.starts] == [1]
    assert outcome.said == ("orders: 1,000 messages wait, 1 slot in use, 1 of them on other machines",)


@pytest.mark.parametrize(("slots", "elsewhere", "starts"), [(0, 0, 0), (1, 1, 0), (2, 1, 1), (1, 0, 1)])
def test_work_on_other_machines_does_not_shorten_the_wait_after_runs_that_failed_here(slots, elsewhere, starts):
    world = World(waiting={"orders": 5})
    world.working["orders"] = Runs(slots, 4, world.time, elsewhere=elsewhere)
    outcome = world.tick(pipeline(max_concurrency=4), budget=2)
    assert len(outcome.starts) == starts
    assert ("the last 4 runs failed" in outcome.said[0]) is (not starts)


@settings(deadline=None)
@given(
    st.sampled_from(["pending", "ramp_up", "fixed"]),
    st.integers(1, 12),
    st.data(),
    st.lists(st.tuples(st.integers(0, 400), st.booleans(), st.integers(0, 3)), min_size=1, max_size=25),
)
def test_no_sequence_of_ticks_has_more_batches_in_work_than_are_allowed(policy, most, data, peeks):
    per_run = data.draw(st.integers(1, most))
    declared = pipeline(concurrency_policy=policy, max_concurrency=most, batches_per_run=per_run, batch_messages=50)
    world, cursor, runs = World(), Cursor(), []
    for waiting, capped, ended in peeks:
        del runs[:ended]
        world.waiting, world.capped = {"orders": waiting}, capped
        world.working = {"orders": Runs(sum(runs))}
        outcome = world.tick(declared, cursor=cursor, budget=0)
        started = [start.slots for start in outcome.starts]
        assert all(0 < slots <= per_run for slots in started)
        runs += started
        assert sum(runs) <= most
        cursor = Cursor.load(outcome.cursor.dump())
        world.time += 1


def test_a_run_may_grow_with_its_queue_unless_the_policy_counts_receivers_itself():
    world = World(waiting={"orders": 1})
    slots = {
        policy: [start.slots for start in world.tick(pipeline(max_concurrency=4, concurrency_policy=policy)).starts]
        for policy in ("pending", "fixed", "ramp_up")
    }
    assert slots == {"pending": [4], "fixed": [4], "ramp_up": [1]}


def test_the_memory_of_ramp_up_survives_from_tick_to_tick():
    declared = pipeline(concurrency_policy="ramp_up", max_concurrency=3)
    world, cursor, slots = World(waiting={"orders": 9}), Cursor(), []
    for _ in range(12):
        outcome = world.tick(declared, cursor=cursor, budget=0)
        cursor = Cursor.load(outcome.cursor.dump())
        slots.append(cursor.ramp_up["orders"].slots)
        world.time += 1
    assert slots == [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3]
    world.waiting = {}
    outcome = world.tick(declared, cursor=cursor, budget=20)
    assert outcome.cursor.ramp_up["orders"].slots == 1


@settings(deadline=None)
@given(
    st.dictionaries(st.text(), st.builds(RampUp, st.integers(0, 9), st.integers(0, 9), st.integers(1, 64))),
    st.integers(0, 50),
    st.floats(0, 2e9),
    st.dictionaries(st.text(), st.tuples(st.floats(0, 2e9), st.text())),
)
def test_a_cursor_is_the_same_after_it_was_stored(ramp_up, failures, retry_at, observed):
    cursor = Cursor(ramp_up, failures, retry_at, observed)
    assert Cursor.load(cursor.dump()) == cursor


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


almost_cursors = st.dictionaries(
    st.sampled_from(["ramp_up", "database_failures", "database_retry_at", "observed", "other"]),
    json_values | st.dictionaries(st.just("orders"), json_values | st.dictionaries(st.just("successes"), json_values)),
)


@settings(deadline=None)
@given(st.none() | st.text() | (json_values | almost_cursors).map(json.dumps))
def test_a_cursor_that_cannot_be_read_is_forgotten_and_the_tick_goes_on(text):
    cursor = Cursor.load(text)
    world = World(waiting={"orders": 1})
    assert len(world.tick(pipeline(concurrency_policy="ramp_up"), cursor=cursor).starts) == 1
    world.away = True
    world.tick(pipeline(), cursor=cursor, budget=0).cursor.dump()


def test_a_wrong_estimate_ends_quietly_in_peek_mode():
    """Another consumer took the messages: the run found nothing and ended, and the loop goes on peeking."""
    world = World(waiting={"orders": 5})
    cursor = world.tick(pipeline()).cursor
    world.waiting, world.working = {"orders": 0}, {"orders": Runs(0, 0, None)}
    outcome = world.tick(pipeline(), cursor=cursor)
    assert outcome.starts == ()
    assert outcome.said == ("orders: nothing waits",)


@pytest.mark.parametrize(("failed", "at_work", "slots"), [(2, 0, [4]), (3, 0, [1]), (3, 1, []), (0, 1, [3])])
def test_a_pipeline_whose_attempts_fail_gets_one_batch_at_a_time(failed, at_work, slots):
    policy = {"rate_limit_after": 3}
    world = World(waiting={"orders": 100_000}, capped=True, working={"orders": Runs(at_work, failed_attempts=failed)})
    outcome = world.tick(pipeline(max_concurrency=4, recoverability=policy))
    assert [start.slots for start in outcome.starts] == slots
    is_said = "one batch at a time, because the last 3 attempts failed" in outcome.said[0]
    assert is_said is (failed == 3)
