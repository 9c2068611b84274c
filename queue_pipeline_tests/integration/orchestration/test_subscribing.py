"""Pipelines subscribe to what they declare, when the peek sensor is on, or by a job."""

import pytest

from queue_pipeline.transport import new_message
from queue_pipeline.transport.layouts.nservicebus.subscriptions import Subscription
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.dagster.in_process import execute, figures, peek_sensor, skip_reason, ticked

WANTED = {"subscribes_to": ["Shop.OrderPlaced, Shop", "Shop.IOrderEvent"], "endpoint": "Shop.Orders"}


@pytest.fixture(autouse=True)
def short_ticks(monkeypatch):
    """Short ticks."""
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0.1")


def subscribed(transport):
    return [(one.endpoint, one.topic) for one in transport.subscriptions.list()]


def test_a_tick_subscribes_the_input_queue_and_a_preview_does_not(backend, queues, instance):
    assert "Shop.Orders" not in (skip_reason(ticked(backend, instance, preview=True, **WANTED)) or "")
    assert subscribed(queues) == [], "a preview"
    ticked(backend, instance, **WANTED)
    address = queues.resolve("orders").canonical
    assert list(queues.subscriptions.list()) == [
        Subscription("Shop.Orders", "Shop.IOrderEvent", address),
        Subscription("Shop.Orders", "Shop.OrderPlaced", address),
    ]
    assert queues.publish("Shop.OrderPlaced", new_message("{}")) == 1
    assert [request.job_name for request in ticked(backend, instance, **WANTED).run_requests] == ["orders_pipeline"]


def test_a_subscription_that_an_operator_ended_stays_ended_until_the_next_start(backend, queues, instance):
    of_one_server = peek_sensor(pipelines.declare(**WANTED))
    ticked(backend, instance, sensor=of_one_server)
    queues.subscriptions.unsubscribe("Shop.Orders", "Shop.OrderPlaced")
    ticked(backend, instance, sensor=of_one_server)
    assert subscribed(queues) == [("Shop.Orders", "Shop.IOrderEvent")]
    ticked(backend, instance, **WANTED)
    assert len(subscribed(queues)) == 2


def test_a_tick_reports_why_a_pipeline_is_not_subscribed_and_tries_again(backend, queues, instance):
    backend.sql(queues, f"DROP TABLE {queues.subscriptions.table.qualified}")
    said = skip_reason(ticked(backend, instance, **WANTED))
    assert "orders is not subscribed to its events: the table of subscriptions" in said
    assert skip_reason(ticked(backend, instance)) is not None
    queues.install("orders", plain_queues=[])
    assert "not subscribed" not in skip_reason(ticked(backend, instance, **WANTED))
    assert len(subscribed(queues)) == 2


def test_the_job_subscribes_and_reports_what_was_new(backend, queues, instance):
    pipeline = pipelines.declare(**WANTED)
    result = execute(backend, instance, "subscribe_pipelines", pipeline)
    assert figures(result, "subscribe_all") == {"subscribed": 2}
    assert len(subscribed(queues)) == 2
    assert figures(execute(backend, instance, "subscribe_pipelines", pipeline), "subscribe_all") == {"subscribed": 0}
