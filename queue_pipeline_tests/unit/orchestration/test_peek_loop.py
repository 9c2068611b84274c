"""A tick of the peek loop: when it answers, what it peeks at, and which queues it reports."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_pipeline.orchestration.peek_loop import (
    DATABASE_BACKOFF,
    Cursor,
    Runs,
)
from queue_pipeline_tests.support.dagster.peek_world import BUDGET, World, pipeline


def test_a_waiting_message_starts_a_run_at_once():
    world = World(waiting={"orders": 5})
    outcome = world.tick(pipeline())
    assert [(start.pipeline.name, start.slots, start.waiting) for start in outcome.starts] == [("orders", 2, "5")]
    assert world.slept == []
    assert outcome.said == ("orders: 5 messages wait, 0 slots in use",)


def test_a_tick_returns_the_moment_something_waits():
    world = World(waiting={"orders": 1}, at={"orders": 7.0})
    outcome = world.tick(pipeline())
    assert len(outcome.starts) == 1
    assert 7.0 <= world.elapsed < 8.01
    assert world.slept == [1.0] * 7


@settings(deadline=None)
@given(
    st.lists(st.floats(0.1, 30, allow_nan=False), min_size=1, max_size=5),
    st.floats(0, 50, allow_nan=False),
    st.one_of(st.none(), st.floats(0, 60, allow_nan=False)),
)
def test_a_tick_stays_within_its_budget_whatever_the_peek_delays(delays, budget, message_at):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)
        pipelines = [pipeline(f"p{n}", peek_delay=delay) for n, delay in enumerate(delays)]
    world = World(waiting={"p0": 1}, at={"p0": 1e9 if message_at is None else message_at})
    outcome = world.tick(*pipelines, budget=budget)
    assert world.elapsed <= budget + 1e-6
    if message_at is not None and message_at + delays[0] < budget:
        assert len(outcome.starts) == 1
        assert world.elapsed <= message_at + delays[0] + 1e-3


def test_an_idle_tick_reports_every_queue_and_peeks_about_once_per_second():
    world = World()
    outcome = world.tick(pipeline("orders"), pipeline("returns"))
    assert outcome.starts == ()
    assert outcome.said == ("orders: nothing waits", "returns: nothing waits")
    assert 39 <= len(world.peeks) / 2 <= 41


def test_every_queue_is_peeked_at_with_its_own_delay():
    world = World()
    world.tick(pipeline("fast", peek_delay=0.5), pipeline("slow", peek_delay=4.0), budget=11.9)
    assert [at for name, at in world.peeks if name == "slow"] == [0, 4, 8]
    assert [at for name, at in world.peeks if name == "fast"] == [n / 2 for n in range(24)]


def test_a_tick_without_time_peeks_once():
    world = World(waiting={"orders": 3})
    assert len(world.tick(pipeline("orders"), pipeline("returns"), budget=0).starts) == 1
    assert [name for name, _ in world.peeks] == ["orders", "returns"]


def test_without_pipelines_a_tick_ends_at_once():
    world = World()
    assert world.tick().said == ()
    assert world.slept == []


def test_runs_for_all_queues_with_messages_start_in_one_tick():
    world = World(waiting={"orders": 1, "returns": 1})
    outcome = world.tick(pipeline("orders"), pipeline("quiet"), pipeline("returns"))
    assert [start.pipeline.name for start in outcome.starts] == ["orders", "returns"]


def test_a_paused_pipeline_gets_no_run_and_the_tick_says_so():
    world = World(waiting={"orders": 5}, held={"orders"})
    outcome = world.tick(pipeline("orders"), pipeline("returns"))
    assert outcome.starts == ()
    assert outcome.said == ("orders is paused", "returns: nothing waits")
    assert {name for name, _ in world.peeks} == {"returns"}


def test_a_pipeline_that_is_resumed_during_a_tick_gets_its_run_in_that_tick():
    class Resumed(World):
        def sleep(self, seconds):
            super().sleep(seconds)
            self.held = set() if self.elapsed >= 3 else {"orders"}

    world = Resumed(waiting={"orders": 5}, held={"orders"})
    outcome = world.tick(pipeline())
    assert len(outcome.starts) == 1
    assert world.elapsed == pytest.approx(3.0)


def test_due_messages_are_looked_at_as_soon_as_the_mover_asks_whatever_the_peeks_wait_for():
    world = World(due=[0.3, 0.7, 2.2], due_look=0.5)
    world.tick(pipeline(peek_delay=10.0))
    assert world.looks[:7] == [0, 0.3, 0.7, 1.2, 1.7, 2.2, 2.7]
    assert max(later - sooner for sooner, later in pairwise(world.looks)) < 0.501
    assert world.looks[-1] >= BUDGET - 0.501
    assert [moment for _, moment in world.peeks] == [0, 10, 20, 30]


def test_due_messages_are_moved_before_a_run_is_started_and_not_while_the_database_is_unavailable():
    world = World(waiting={"orders": 1})
    assert len(world.tick(pipeline()).starts) == 1
    assert world.looks == [0]
    world = World(away=True)
    world.tick(pipeline())
    assert world.looks == []


def test_a_tick_looks_after_the_rest_at_every_round_whether_runs_are_started_or_not():
    world = World(waiting={"orders": 1}, at={"orders": 2.0})
    assert len(world.tick(pipeline()).starts) == 1
    assert world.upkeep == [(0, BUDGET), (1, BUDGET), (2, BUDGET)]


def test_a_tick_of_a_process_that_stops_ends_at_once_and_starts_nothing():
    world = World(waiting={"orders": 1}, at={"orders": 3.0}, stops_at=2.5)
    outcome = world.tick(pipeline())
    assert (outcome.starts, outcome.said, world.elapsed) == ((), ("the code server stops",), 2.5)
    world = World(away=True, stops_at=0.0)
    cursor = Cursor(database_failures=5, database_retry_at=world.time + 16)
    assert world.tick(pipeline(), cursor=cursor).cursor == cursor
    assert world.elapsed == 0


def test_a_missing_queue_is_named_with_the_command_that_installs_it_and_the_others_go_on():
    world = World(waiting={"returns": 1}, missing={"orders"})
    outcome = world.tick(pipeline("orders"), pipeline("returns"))
    assert [start.pipeline.name for start in outcome.starts] == ["returns"]
    assert "queue-pipeline install orders" in outcome.said[0]


def test_a_database_without_our_tables_is_reported_with_the_command_that_creates_them_until_they_are_there():
    world = World(waiting={"orders": 1}, missing={"everything"})
    for _ in range(3):
        outcome = world.tick(pipeline())
        assert (outcome.starts, outcome.cursor.database_failures) == ((), 0)
        assert "QueueClaims" in outcome.said[0] and "queue-pipeline install" in outcome.said[0]
    world.missing.clear()
    assert len(world.tick(pipeline()).starts) == 1


def test_an_unavailable_database_is_reported_once_and_tried_again_after_growing_waits():
    world = World(away=True)
    outcome = world.tick(pipeline())
    assert outcome.said == ("the database is away: postgresql at db:5432 does not answer; next try in 1 s",)
    assert world.elapsed == 0
    waits = []
    for _ in range(8):
        outcome = world.tick(pipeline(), cursor=Cursor.load(outcome.cursor.dump()))
        waits.append(world.elapsed)
        assert outcome.starts == ()
        assert outcome.said == (f"the database still cannot be used after {outcome.cursor.database_failures} tries",)
    assert waits == [1, 2, 4, 8, 16] + [DATABASE_BACKOFF.longest] * 3


def test_a_login_that_is_refused_is_reported_and_tried_again_later():
    world = World(denied={"everything"})
    outcome = world.tick(pipeline())
    assert outcome.said == ("the database refuses access: no login; next try in 1 s",)
    assert outcome.cursor.database_failures == 1


def test_a_queue_that_may_not_be_read_is_reported_and_the_others_continue():
    world = World(waiting={"returns": 1}, denied={"orders"})
    outcome = world.tick(pipeline("orders"), pipeline("returns"))
    assert [start.pipeline.name for start in outcome.starts] == ["returns"]
    assert outcome.said[0] == "no right on orders"


def test_a_locked_queue_is_reported_and_waited_for_once_per_tick_and_the_others_continue():
    world = World(locked={"orders"})
    outcome = world.tick(pipeline("orders"), pipeline("returns"))
    assert outcome.said == ("orders: another session holds a lock", "returns: nothing waits")
    assert world.elapsed <= BUDGET
    assert [name for name, _ in world.peeks].count("orders") == 1
    assert [name for name, _ in world.peeks].count("returns") > 10


def test_a_tick_waits_for_no_further_locks_when_its_time_is_up():
    names = [f"queue{number}" for number in range(10)]
    world = World(locked=set(names))
    world.tick(*(pipeline(name) for name in names))
    assert world.elapsed <= BUDGET + 15


def test_a_database_whose_tables_are_locked_is_reported_and_tried_again_later():
    world = World(locked={"everything"})
    outcome = world.tick(pipeline())
    assert outcome.said == ("the database is locked: another session holds a lock; next try in 1 s",)
    assert outcome.cursor.database_failures == 1


def test_a_backoff_longer_than_the_tick_lasts_several_ticks_without_an_attempt():
    cursor = Cursor(database_failures=7, database_retry_at=1_000_025.0)
    world = World(away=True)
    for _ in range(2):
        outcome = world.tick(pipeline(), cursor=cursor, budget=10)
        assert outcome.cursor == cursor
        assert world.elapsed == 10
    outcome = world.tick(pipeline(), cursor=cursor, budget=10)
    assert world.elapsed == 5
    assert outcome.cursor.database_failures == 8


def test_a_database_that_is_back_is_peeked_at_again_and_what_failed_is_forgotten():
    world = World(away=True)
    cursor = world.tick(pipeline()).cursor
    world.away, world.waiting = False, {"orders": 2}
    outcome = world.tick(pipeline(), cursor=cursor)
    assert len(outcome.starts) == 1
    assert (outcome.cursor.database_failures, outcome.cursor.database_retry_at) == (0, 0.0)
    world.away = True
    assert "is away: postgresql" in world.tick(pipeline(), cursor=outcome.cursor).said[0]


@pytest.mark.parametrize(("failed", "wait"), [(2, 5), (3, 10), (5, 40), (30, 300)])
def test_a_pipeline_whose_runs_keep_failing_is_tried_again_after_a_growing_wait(failed, wait):
    world = World(waiting={"orders": 5})
    world.working["orders"] = Runs(0, failed, world.time - wait + 3)
    outcome = world.tick(pipeline(), budget=2)
    assert outcome.starts == ()
    assert outcome.said[0].startswith(f"orders: the last {failed} runs failed; next try in ")
    assert outcome.said[0].endswith("5 messages wait")
    world.time += 2
    assert len(world.tick(pipeline(), budget=2).starts) == 1
