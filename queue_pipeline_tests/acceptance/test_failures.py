"""A deployment that works by itself: failed orders that are sent back, delayed messages that come when they are due."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta

import pytest

from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline_tests.acceptance.shop import Shop, runs_of_orders, settle
from queue_pipeline_tests.support.dagster.dagster_processes import Dagster
from queue_pipeline_tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(600)]


def test_failed_orders_that_are_sent_back_are_processed_again(shop: Shop, dagster: Dagster) -> None:
    """Nothing was fixed, so they fail again: each is in the error queue once more, and once."""
    shop.place(3, bad=6)
    shop.wait_until_idle()
    before = Counter(shop.bodies("error"))
    settle(shop, dagster)
    listed = json.loads(shop.command("errors", "list", "--exception", "CountryNotServed", "--json"))
    assert listed["messages"]
    shop.transport.pauses.pause("orders", by="the tests")
    returned = json.loads(shop.command("errors", "retry", "--exception", "CountryNotServed", "--json"))
    assert returned["returned"] == len(listed["messages"]) == shop.waiting()
    shop.transport.pauses.resume("orders")
    shop.wait_until_idle()
    assert Counter(shop.bodies("error")) == before
    shop.check_exactly_once()
    settle(shop, dagster)


def test_a_delayed_message_arrives_without_a_run(shop: Shop, dagster: Dagster) -> None:
    """Moved by the ticks of the peek sensor straight to its destination, though the pipeline stands still."""
    settle(shop, dagster)
    shop.transport.install(plain_queues=["later"])
    shop.transport.pauses.pause("orders", by="the tests")
    try:
        runs = {run.id for run in runs_of_orders(dagster)}
        with QueueTransport(shop.environment["QUEUE_PIPELINE_DATABASE"], endpoint="orders") as sender:
            sender.send("later", new_message("in time", delay=timedelta(seconds=2)))
        assert shop.transport.status("orders")[0].delayed == 1
        eventually(lambda: shop.bodies("later") == ["in time"], seconds=60)
        assert shop.transport.status("orders")[0].delayed == 0
        assert {run.id for run in runs_of_orders(dagster)} == runs
    finally:
        shop.transport.pauses.resume("orders")
