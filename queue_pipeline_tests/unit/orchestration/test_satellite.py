"""The satellite under a clock of its own: refreshed by ticks, gone without them."""

import pytest

from queue_pipeline.orchestration import satellite
from queue_pipeline.orchestration.satellite import LONGEST_REST_SECONDS, Satellite, keep_alive
from queue_pipeline.orchestration.transport_resource import QueueTransportResource
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.transport.errors import DatabaseUnavailableError
from queue_pipeline_tests.support.waiting import eventually


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class Transport:
    """A database that may be away."""

    url = "postgresql://here"

    def __init__(self):
        self.away, self.looks = False, 0
        self.database = self.delayed = self

    def resolve(self, queue):
        return queue

    def next_due_seconds(self, queue):
        self.looks += 1
        if self.away:
            raise DatabaseUnavailableError("it is away")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def transport():
    return Transport()


@pytest.fixture
def orders(transport, clock):
    started = Satellite([(transport, "orders")], clock)
    yield started
    started.stop()


def pass_time(clock, orders, seconds):
    """Let time pass for the mover too, which waits on the machine's clock."""
    clock.now += seconds
    if orders.mover is not None:
        orders.mover.notify(0)


def test_it_starts_with_the_first_tick_and_once(orders):
    assert (orders.mover, orders.trouble) == (None, None)
    orders.refresh()
    mover = orders.mover
    orders.refresh()
    assert orders.mover is mover
    assert mover.is_running


def test_ticks_keep_it_and_it_ends_without_them(orders, clock):
    orders.refresh()
    mover = orders.mover
    for _ in range(10):
        pass_time(clock, orders, LONGEST_REST_SECONDS - 1)
        orders.refresh()
    assert orders.mover is mover
    pass_time(clock, orders, LONGEST_REST_SECONDS + 1)
    eventually(lambda: not mover.is_running)
    assert orders.mover is None


def test_the_next_tick_starts_it_again(orders, clock):
    orders.refresh()
    ended = orders.mover
    pass_time(clock, orders, LONGEST_REST_SECONDS + 1)
    eventually(lambda: not ended.is_running)
    orders.refresh()
    assert orders.mover is not ended
    assert orders.mover.is_running


def test_it_outlives_a_database_that_is_away(orders, transport, clock):
    transport.away = True
    orders.refresh()
    eventually(lambda: orders.trouble == "it is away")
    transport.away = False
    pass_time(clock, orders, 40)
    eventually(lambda: orders.trouble is None)
    assert orders.mover.is_running


def test_it_ends_at_once_when_it_is_stopped(orders):
    orders.refresh()
    mover = orders.mover
    orders.stop()
    orders.stop()
    assert not mover.is_running


def pipeline(name, **options):
    return QueuePipeline(name=name, input_queue=name, transform=lambda messages: messages, **options)


def test_there_is_one_for_each_database_and_its_queues(tmp_path, monkeypatch):
    monkeypatch.setattr(satellite, "_satellites", started := {})

    def kept(database, *pipelines):
        return keep_alive(QueueTransportResource(database=f"sqlite:///{tmp_path}/{database}.db"), pipelines)

    try:
        first = kept("a", pipeline("orders"), pipeline("returns"))
        assert kept("a", pipeline("orders"), pipeline("returns")) is first
        others = [
            kept("a", pipeline("orders")),
            kept("b", pipeline("orders"), pipeline("returns")),
            kept("a", pipeline("orders"), pipeline("returns", error_queue="returns.failed")),
        ]
        assert len({id(each) for each in (first, *others)}) == len(started) == 4
        assert all(each.mover.is_running for each in started.values())
    finally:
        for each in started.values():
            each.stop()
