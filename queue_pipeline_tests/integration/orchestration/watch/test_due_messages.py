"""Due messages are moved by the ticks of the peek sensor, and not by a preview of it."""

from datetime import timedelta

import pytest

from queue_pipeline.orchestration.watch.code_server import CodeServer
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.dagster.in_process import skip_reason, ticked


@pytest.fixture(autouse=True)
def short_ticks(monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0.3")


@pytest.fixture
def transport(sqlite):
    transport = sqlite.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


def late(transport, queue="orders"):
    transport.send(queue, new_message("late", delay=timedelta(seconds=-5)))


def has_moved(transport):
    return transport.status("orders")[0].delayed == 0


def test_a_tick_moves_what_is_due(backend, queues, instance):
    late(queues)
    ticked(backend, instance)
    assert has_moved(queues)
    assert queues.peek("orders") == 1
    assert [request.job_name for request in ticked(backend, instance).run_requests] == ["orders_pipeline"]


def test_a_message_that_becomes_due_during_a_tick_is_moved_in_time(sqlite, transport, instance, monkeypatch):
    """Also while the peeks are seconds apart."""
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "1.5")
    transport.send("orders", new_message("soon", delay=timedelta(seconds=0.7)))
    ticked(sqlite, instance, peek_delay=10)
    assert has_moved(transport)


def test_a_tick_that_starts_a_run_moves_what_is_due_in_the_queues_of_others(sqlite, transport, instance):
    transport.pauses.pause("orders", "me")
    late(transport)
    transport.install("returns")
    transport.send("returns", new_message("waits"))
    both = [pipelines.declare(), pipelines.declare(name="returns", input_queue="returns")]
    assert [one.job_name for one in ticked(sqlite, instance, declared=both).run_requests] == ["returns_pipeline"]
    assert has_moved(transport)


def test_due_messages_of_a_paused_pipeline_move_and_wait(sqlite, transport, instance):
    transport.pauses.pause("orders", "me")
    late(transport)
    assert skip_reason(ticked(sqlite, instance)) == "orders is paused"
    assert transport.peek("orders") == 1
    assert skip_reason(ticked(sqlite, instance)) == "orders is paused"


def test_the_mover_knows_the_error_queue_of_each_pipeline(sqlite, transport, instance):
    transport.install(plain_queues=["nowhere", "failed orders"])
    late(transport, "nowhere")
    sqlite.sql(transport, "DROP TABLE nowhere")
    ticked(sqlite, instance, error_queue="failed orders")
    assert transport.peek("failed orders") == 1


def test_a_preview_moves_nothing_and_does_not_loop(sqlite, transport, instance, monkeypatch):
    """The UI evaluates a sensor for a person who wants to see what it would do, also one that is off."""
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "40")
    late(transport)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CodeServer, "sleep", lambda *_: pytest.fail("it waits"))
        assert skip_reason(ticked(sqlite, instance, preview=True)) == "orders: nothing waits"
    assert not has_moved(transport)


def test_a_tick_that_peeks_once_moves_nothing(sqlite, transport, instance, monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0")
    late(transport)
    ticked(sqlite, instance)
    assert not has_moved(transport)


def test_an_error_of_the_mover_is_reported_by_the_tick_and_the_mover_recovers(sqlite, transport, instance):
    table = transport.book.sibling(transport.resolve("orders"), "Delayed").qualified
    sqlite.sql(transport, f"ALTER TABLE {table} RENAME COLUMN Due TO Never")
    assert skip_reason(ticked(sqlite, instance)).startswith("orders: nothing waits; delayed messages do not move: ")
    sqlite.sql(transport, f"ALTER TABLE {table} RENAME COLUMN Never TO Due")
    late(transport)
    ticked(sqlite, instance)
    assert has_moved(transport)
