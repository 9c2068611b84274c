"""The satellite of delayed delivery as the peek sensor keeps it, on an instance that knows which sensors are on."""

from datetime import timedelta

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import InstigatorStatus

from queue_pipeline.orchestration import satellite
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.in_process import switch, ticked, told
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture
def instance(tmp_path):
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


@pytest.fixture
def satellites(monkeypatch):
    """The satellites that a test starts, with nothing left of them afterwards."""
    started = {}
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0.3")
    monkeypatch.setattr(satellite, "_satellites", started)
    yield started
    for each in started.values():
        each.stop()


@pytest.fixture
def transport(sqlite):
    transport = sqlite.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


def late(transport, queue="orders"):
    transport.send(queue, new_message("late", delay=timedelta(seconds=-5)))


def test_a_tick_of_a_sensor_that_is_on_keeps_one_mover_of_due_messages(backend, queues, instance, satellites):
    switch(instance, InstigatorStatus.RUNNING)
    ticked(backend, instance)
    (first,) = satellites.values()
    mover = first.mover
    assert mover.is_running
    late(queues)
    eventually(lambda: queues.peek("orders") == 1)
    requests = ticked(backend, instance).run_requests
    assert [request.job_name for request in requests] == ["orders_pipeline"]
    assert list(satellites.values()) == [first]
    assert first.mover is mover
    assert mover.is_running


def test_due_messages_of_a_paused_pipeline_move_and_wait(sqlite, transport, instance, satellites):
    transport.pauses.pause("orders", "me")
    late(transport)
    switch(instance, InstigatorStatus.RUNNING)
    assert told(ticked(sqlite, instance)) == "orders is paused"
    eventually(lambda: transport.peek("orders") == 1)
    assert told(ticked(sqlite, instance)) == "orders is paused"


def test_the_mover_knows_the_error_queue_of_each_pipeline(sqlite, transport, instance, satellites):
    transport.install(plain_queues=["nowhere", "failed orders"])
    late(transport, "nowhere")
    sqlite.sql(transport, "DROP TABLE nowhere")
    switch(instance, InstigatorStatus.RUNNING)
    ticked(sqlite, instance, error_queue="failed orders")
    eventually(lambda: transport.peek("failed orders") == 1)


@pytest.mark.parametrize("status", [None, InstigatorStatus.STOPPED, InstigatorStatus.DECLARED_IN_CODE])
def test_trying_a_sensor_that_is_off_moves_nothing(sqlite, transport, instance, satellites, status):
    """The UI evaluates a sensor for whoever wants to see what it would do."""
    if status is not None:
        switch(instance, status)
    ticked(sqlite, instance)
    assert satellites == {}


def test_an_instance_that_keeps_no_sensors_has_none_that_is_on(sqlite, transport, satellites):
    with dg.DagsterInstance.ephemeral() as instance:
        assert told(ticked(sqlite, instance)) == "orders: nothing waits"
    assert satellites == {}


def test_a_sensor_that_the_code_switches_on_is_on_until_somebody_stops_it(sqlite, transport, instance, satellites):
    switch(instance, InstigatorStatus.STOPPED)
    ticked(sqlite, instance, autostart=True)
    assert satellites == {}
    switch(instance, InstigatorStatus.DECLARED_IN_CODE)
    ticked(sqlite, instance, autostart=True)
    assert len(satellites) == 1


def test_a_sensor_of_the_same_name_in_another_place_does_not_count(sqlite, transport, instance, satellites):
    switch(instance, InstigatorStatus.RUNNING, repository="another")
    ticked(sqlite, instance, repository="__repository__")
    assert satellites == {}
    switch(instance, InstigatorStatus.RUNNING)
    ticked(sqlite, instance, repository="__repository__")
    assert len(satellites) == 1


def test_a_tick_that_peeks_once_starts_no_mover(sqlite, transport, instance, satellites, monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0")
    switch(instance, InstigatorStatus.RUNNING)
    ticked(sqlite, instance)
    assert satellites == {}


def test_trouble_of_the_mover_is_told_by_the_tick_and_outlived(sqlite, transport, instance, satellites):
    table = transport.book.sibling(transport.resolve("orders"), "Delayed").qualified
    sqlite.sql(transport, f"ALTER TABLE {table} RENAME COLUMN Due TO Never")
    switch(instance, InstigatorStatus.RUNNING)
    eventually(lambda: "delayed messages do not move: " in told(ticked(sqlite, instance)))
    assert told(ticked(sqlite, instance)).startswith("orders: nothing waits; delayed messages do not move: ")
    sqlite.sql(transport, f"ALTER TABLE {table} RENAME COLUMN Never TO Due")
    late(transport)
    eventually(lambda: transport.peek("orders") == 1)
