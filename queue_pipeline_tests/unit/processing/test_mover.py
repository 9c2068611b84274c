"""The mover of due messages under a clock of its own: time passes when the test says so."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.processing.due_schedule import (
    LONGEST_BACKOFF_SECONDS,
    LOOK_SECONDS,
    RARE_LOOK_SECONDS,
    RETRY_SECONDS,
    DueSchedule,
)
from queue_pipeline.processing.mover import DueMover
from queue_pipeline.transport.errors import (
    AccessDeniedError,
    DatabaseUnavailableError,
    QueueNotFoundError,
    TransientDatabaseError,
)
from queue_pipeline_tests.support.waiting import eventually


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Table:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


class Transport:
    """Queues with messages that are due at given moments of the clock, on a database that can fail."""

    def __init__(self, clock, url="postgresql://here"):
        self.clock, self.due, self.held, self.errors = clock, {}, set(), {}
        self.away = None
        self.looks, self.moves = [], []
        self.database = self
        self.url = url
        self.delayed = self

    def resolve(self, queue):
        return Table(queue)

    def next_due_seconds(self, table):
        self.looks.append((table.name, self.clock()))
        if self.away or table.name in self.errors:
            raise self.away or self.errors[table.name]
        moments = self.due.get(table.name, [])
        return min(moments) - self.clock() if moments else None

    def move_due(self, table, batch):
        self.moves.append((table.name, batch))
        if table.name in self.held:
            return 0
        moments = self.due[table.name]
        self.due[table.name] = [moment for moment in moments if moment > self.clock()]
        return len(moments) - len(self.due[table.name])


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def transport(clock):
    return Transport(clock)


def mover_of(transport, *queues, **options):
    return DueMover([(transport, queue) for queue in queues or ("orders",)], clock=transport.clock, **options)


def run_for(mover, clock, seconds):
    """Run the loop as the thread would; returns its waits."""
    end, waits = clock() + seconds, []
    while clock() < end:
        waits.append(mover.run_once())
        assert waits[-1] > 0, "a busy loop"
        clock.now += waits[-1]
    return waits


# --- the schedule ------------------------------------------------------------------------------------------


def test_the_first_look_is_at_once(clock):
    assert DueSchedule(clock).wait_seconds == 0


def test_an_earlier_due_time_replaces_a_later_one(clock):
    """UT-30: of two messages the earlier one counts, whichever was stored first."""
    schedule = DueSchedule(clock)
    schedule.seen(None)
    schedule.notify(0.4)
    schedule.notify(0.2)
    assert schedule.wait_seconds == pytest.approx(0.2)


def test_a_later_due_time_does_not_postpone_an_earlier_one(clock):
    """UT-31: nor does a look that finds a later one."""
    schedule = DueSchedule(clock)
    schedule.notify(0.2)
    schedule.notify(0.4)
    schedule.begin()
    schedule.seen(0.3)
    assert schedule.wait_seconds == pytest.approx(0.2)


def test_failures_back_off_by_1_2_4_seconds_up_to_half_a_minute(clock):
    """UT-32: only failures back off; a table without messages is looked at twice a second, for others write too."""
    schedule, waits = DueSchedule(clock), []
    for _ in range(8):
        schedule.failed()
        waits.append(schedule.wait_seconds)
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]
    schedule.seen(None)
    assert schedule.wait_seconds == LOOK_SECONDS
    schedule.failed()
    assert schedule.wait_seconds == 1
    for _ in range(2000):
        schedule.failed()
    assert schedule.wait_seconds == LONGEST_BACKOFF_SECONDS


@pytest.mark.parametrize(("due_in", "wait"), [(0.3, 0.3), (0.499, 0.499), (0.5, 0.5), (0.501, 0.5), (86_400, 0.5)])
def test_the_next_message_counts_if_it_is_due_before_the_next_look(clock, due_in, wait):
    """UT-33, UT-34: one that is due later does not put the look off."""
    schedule = DueSchedule(clock)
    schedule.seen(due_in)
    assert schedule.wait_seconds == pytest.approx(wait)


def test_a_wait_of_a_millisecond_is_exact(clock):
    """UT-37: neither rounded to nothing, which would be a busy loop, nor to a look's interval."""
    schedule = DueSchedule(clock)
    schedule.seen(0.001)
    assert schedule.wait_seconds == pytest.approx(0.001)
    clock.now += 0.001
    assert schedule.wait_seconds == 0


def test_of_a_thousand_concurrent_notices_the_earliest_holds(clock):
    """UT-38: from as many threads as there are."""
    schedule = DueSchedule(clock)
    schedule.missing()
    numbers = [7 * n % 1000 for n in range(1000)]
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda n: schedule.notify(5 + n / 100), numbers))
    assert schedule.wait_seconds == pytest.approx(5)


def test_a_notice_is_answered_by_the_look_after_its_time_only(clock):
    """UT-39: one that comes in while a look is under way is not lost."""
    schedule = DueSchedule(clock)
    schedule.notify(0.0)
    schedule.notify(0.1)
    schedule.begin()
    schedule.notify(0.2)
    schedule.seen(None)
    assert schedule.wait_seconds == pytest.approx(0.2)


def test_notices_do_not_shorten_the_back_off(clock):
    schedule = DueSchedule(clock)
    schedule.failed()
    schedule.notify(0)
    assert schedule.wait_seconds == 1


@given(st.none() | st.floats(-1e9, 1e9))
def test_no_finding_makes_the_loop_busy(due_in):
    schedule = DueSchedule(Clock())
    schedule.seen(due_in)
    assert 0 < schedule.wait_seconds <= LOOK_SECONDS or (due_in is not None and 0 < due_in < 1e-9)


# --- the mover ---------------------------------------------------------------------------------------------


def test_messages_are_moved_when_they_are_due(transport, clock):
    """UT-33, UT-35: exactly then, also between two looks, and each once."""
    transport.due["orders"] = [clock() + seconds for seconds in (0.3, 1.7, 1.701, 9.0)]
    arrived = []
    mover = mover_of(transport, on_moved=lambda queue, count: arrived.append((queue, round(clock() - 1000, 3), count)))
    waits = run_for(mover, clock, 10)
    assert [(queue, count) for queue, _, count in arrived] == [("orders", 1)] * 4
    assert [moment for _, moment, _ in arrived] == pytest.approx([0.3, 1.7, 1.701, 9.0])
    assert mover.moved == 4
    assert max(waits) <= LOOK_SECONDS


def test_what_others_store_is_seen_within_half_a_second(transport, clock):
    """UT-30, UT-31: a message a day away hides nothing."""
    transport.due["orders"] = [clock() + 86_400]
    mover = mover_of(transport)
    run_for(mover, clock, 3)
    transport.due["orders"].append(clock() - 1)
    run_for(mover, clock, LOOK_SECONDS)
    assert mover.moved == 1


def test_nothing_is_written_while_nothing_is_due(transport, clock):
    transport.due["orders"] = [clock() + 100]
    run_for(mover_of(transport), clock, 10)
    assert transport.moves == []
    assert 20 <= len(transport.looks) <= 21


def test_a_message_that_another_mover_holds_is_tried_again_soon_and_without_haste(transport, clock):
    transport.due["orders"], transport.held = [clock() - 1], {"orders"}
    mover = mover_of(transport)
    assert set(map(round_, run_for(mover, clock, 1))) == {RETRY_SECONDS}
    assert mover.moved == 0
    transport.held.clear()
    run_for(mover, clock, RETRY_SECONDS)
    assert mover.moved == 1


def round_(seconds):
    return round(seconds, 6)


def test_a_queue_without_a_delayed_table_is_looked_at_rarely(transport, clock):
    transport.errors["plain"] = QueueNotFoundError("plain.Delayed")
    transport.due["orders"] = [clock() + n for n in range(60)]
    mover = mover_of(transport, "plain", "orders")
    run_for(mover, clock, 61)
    assert [moment - 1000 for queue, moment in transport.looks if queue == "plain"] == pytest.approx(
        [0, RARE_LOOK_SECONDS, 2 * RARE_LOOK_SECONDS], abs=LOOK_SECONDS
    )
    assert (mover.moved, mover.last_error) == (60, None)


def test_a_database_that_is_away_is_told_once_and_tried_less_and_less_often(transport, clock, caplog):
    caplog.set_level(logging.INFO)
    mover = mover_of(transport, "orders", "returns")
    run_for(mover, clock, 1)
    transport.looks.clear()
    transport.away, began = DatabaseUnavailableError("postgresql at here cannot be reached"), clock()
    run_for(mover, clock, 100)
    assert len(transport.looks) == 8, "one queue asks for all of its database"
    assert [moment - began for _, moment in transport.looks] == pytest.approx([0, 1, 3, 7, 15, 31, 61, 91], abs=1)
    assert mover.last_error == "postgresql at here cannot be reached"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "orders cannot be moved: postgresql at here cannot be reached" in caplog.text
    transport.away = None
    transport.due["returns"] = [clock() - 1]
    run_for(mover, clock, LONGEST_BACKOFF_SECONDS)
    assert (mover.moved, mover.last_error) == (1, None)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    transport.away = DatabaseUnavailableError("again")
    run_for(mover, clock, 1)
    assert caplog.records[-1].levelname == "WARNING"


@pytest.mark.parametrize(
    "error",
    [AccessDeniedError("no right on orders"), TransientDatabaseError("busy"), ZeroDivisionError("a bug")],
    ids=lambda error: type(error).__name__,
)
def test_trouble_with_one_queue_leaves_the_others_alone(transport, clock, error):
    transport.errors["orders"] = error
    transport.due["returns"] = [clock() + n for n in range(10)]
    mover = mover_of(transport, "orders", "returns")
    run_for(mover, clock, 10)
    assert mover.moved == 10
    assert str(error) in mover.last_error
    del transport.errors["orders"]
    run_for(mover, clock, 10)
    assert mover.last_error is None


def test_another_database_is_not_taken_for_away(transport, clock):
    other = Transport(clock, "postgresql://there")
    transport.away = DatabaseUnavailableError("away")
    other.due["orders"] = [clock() + n for n in range(10)]
    mover = DueMover([(transport, "orders"), (other, "orders")], clock=clock)
    run_for(mover, clock, 10)
    assert mover.moved == 10
    assert mover.last_error == "away"


def test_a_batch_is_as_large_as_asked_for(transport, clock):
    transport.due["orders"] = [clock()]
    mover_of(transport, batch=7).run_once()
    assert transport.moves == [("orders", 7)]


def test_an_output_that_fails_is_no_trouble_of_the_database(transport, clock):
    """The command line ends when nobody reads it any more."""

    def broken(queue, count):
        raise BrokenPipeError

    transport.due["orders"] = [clock()]
    mover = mover_of(transport, on_moved=broken)
    with pytest.raises(BrokenPipeError):
        mover.run_once()
    assert (mover.moved, mover.last_error) == (1, None)


# --- the thread --------------------------------------------------------------------------------------------


def test_a_notice_while_the_thread_waits_is_seen_at_once(transport):
    """UT-39: however long the wait would have been."""
    transport.errors["orders"] = QueueNotFoundError("orders.Delayed")
    with DueMover([(transport, "orders")]) as mover:
        eventually(lambda: transport.looks)
        del transport.errors["orders"]
        transport.due["orders"] = [transport.clock() - 1]
        mover.notify(0)
        assert eventually(lambda: mover.moved) == 1
    assert not mover.is_running


def test_the_thread_stops_at_once_and_can_be_started_again(transport):
    mover = mover_of(transport)
    mover.start()
    mover.start()
    assert [thread.name for thread in threading.enumerate()].count("queue_pipeline mover") == 1
    mover.stop()
    assert not mover.is_running
    looks = len(transport.looks)
    with mover:
        transport.clock.now += 10
        mover.notify(0)
        eventually(lambda: len(transport.looks) > looks)
    assert not mover.is_running


def test_the_thread_ends_by_itself_when_it_is_told_not_to_go_on(transport):
    answers = iter([True, True, False])
    mover = mover_of(transport, go_on=lambda: next(answers))
    mover.start()
    mover.notify(0)
    eventually(lambda: not mover.is_running)
    assert next(answers, "all asked") == "all asked"


def test_without_queues_nothing_happens(clock):
    assert DueMover([], clock=clock).run_once() == RARE_LOOK_SECONDS
