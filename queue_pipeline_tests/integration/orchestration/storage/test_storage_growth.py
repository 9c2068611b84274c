"""What a day costs Dagster's storage, measured on SQLite: hours of ticks on a clock of the test's own, and one run.

`pytest -s` prints the table of docs/operations.md. SQLite keeps asset events twice; PostgreSQL has fewer rows.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from types import SimpleNamespace

import dagster as dg
import pytest

from queue_pipeline.orchestration import sensors
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.run_log import REPORT_SECONDS
from queue_pipeline.orchestration.watch import queue_observations, surroundings
from queue_pipeline.orchestration.watch.upkeep import Upkeep
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.dagster.in_process import execute, peek_sensor, ticked
from queue_pipeline_tests.support.dagster.storage_rows import storage_rows

TICKS_A_DAY = 1_920
"""A tick lasts 40 s, and Dagster begins one every 5 s."""
HOUR = 3600.0


class Days:
    """A peek sensor whose clock goes as the test says, on an instance whose rows are counted."""

    def __init__(self, backend, monkeypatch) -> None:
        self.now = time.time()
        self._backend = backend
        self._cursor: str | None = None
        clock = SimpleNamespace(time=lambda: self.now, monotonic=time.monotonic)
        monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0.001")
        for module in (queue_observations, sensors, surroundings):
            monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(sensors, "Upkeep", functools.partial(Upkeep, clock=lambda: self.now))
        self._sensor = peek_sensor(pipelines.declare())

    def tick(self, instance: dg.DagsterInstance, seconds: float) -> None:
        """What the daemon does: evaluate, and store the events; the next tick is some time later."""
        result = ticked(self._backend, instance, sensor=self._sensor, cursor=self._cursor)
        self._cursor = result.cursor
        for event in result.asset_events:
            instance.report_runless_asset_event(event)
        self.now += seconds


@pytest.fixture
def instance(home):
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        yield instance


@pytest.fixture
def queues(sqlite):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


def hour_of_ticks(days, instance, home, seconds, change=lambda: None):
    """The rows of an hour with ticks at a fixed interval, after two ticks to which everything is new."""
    for _ in range(2):
        days.tick(instance, seconds)
    before = storage_rows(home)
    for _ in range(int(HOUR / seconds)):
        change()
        days.tick(instance, seconds)
    return storage_rows(home) - before


def rows_of_second(home, work):
    """The rows of some work when it is done again: Dagster keeps a description of a job once."""
    work()
    before = storage_rows(home)
    work()
    return storage_rows(home) - before


def report(title, rows):
    print(f"\n{title}: {sum(rows.values()):,} rows a day, and {TICKS_A_DAY:,} ticks")
    for table, count in rows.most_common():
        print(f"    {table:<28}{count:>10,}")


def times(count, rows):
    return Counter({table: number * count for table, number in rows.items()})


def test_a_day_without_messages_costs_little(sqlite, queues, instance, home, monkeypatch):
    # More ticks would add nothing: what is due every five minutes at most is stored every hour.
    ticks = hour_of_ticks(Days(sqlite, monkeypatch), instance, home, 300)
    maintenance = rows_of_second(home, lambda: execute(sqlite, instance, "purge_expired"))
    # Purged every hour; indexes are checked and history is removed once per day, with about as many rows.
    day = times(24, ticks) + times(26, maintenance)
    report("idle", day)
    assert sum(times(24, ticks).values()) <= 400
    assert sum(day.values()) <= 1_000


def test_a_day_of_steady_traffic_costs_little_more(sqlite, queues, warm, instance, home, monkeypatch):
    """40 messages per second: depths change between ticks, and there is one run per hour with one report per minute."""
    # A changed queue is stored once per minute, however many ticks there are.
    ticks = hour_of_ticks(
        Days(sqlite, monkeypatch), instance, home, 60, lambda: queues.send("orders", new_message("1"))
    )
    definitions = dg.Definitions.merge(
        build_definitions([pipelines.declare()], autostart=False),
        dg.Definitions(resources=pipelines.resources(sqlite, warm)),
    )

    def work():
        queues.send("orders", new_message("1"))
        assert definitions.resolve_job_def("orders_pipeline").execute_in_process(instance=instance).success

    run = rows_of_second(home, work)
    # The test's run ends before its first report; one of an hour has one for each minute, stored twice.
    run["event_logs"] += 2 * round(HOUR / REPORT_SECONDS)
    day = times(24, ticks) + times(24, run)
    report("40 messages a second", day)
    assert sum(day.values()) <= 8_000
