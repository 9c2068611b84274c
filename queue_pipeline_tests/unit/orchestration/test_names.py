import dagster as dg
import pytest

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.sensors import DEFAULT_TICK_SECONDS, tick_seconds
from queue_pipeline.processing.declaration.pipeline import QueuePipeline

ORDERS = QueuePipeline(name="orders", input_queue="orders", transform=lambda messages: messages)


@pytest.mark.parametrize(
    ("queue", "key"),
    [
        ("orders", "queues/orders_queue"),
        ("shop.orders", "queues/shop/orders_queue"),
        ("orders@[dbo]@[shop]", "queues/orders/dbo/shop_queue"),
        ('"Sales"."Orders"', "queues/Sales/Orders_queue"),
        ("orders-eu", "queues/orders-eu_queue"),
    ],
)
def test_a_queue_is_an_asset_whose_key_a_person_can_guess(queue, key):
    assert names.Names().queue_key(queue).to_user_string() == key


def test_a_pipeline_has_an_asset_a_job_and_an_owner_of_its_name():
    assert names.Names().pipeline_key(ORDERS) == dg.AssetKey("orders")
    assert names.Names().job(ORDERS) == "orders_pipeline"
    assert names.owner("1234") == "run 1234"


@pytest.mark.parametrize(("given", "seconds"), [(None, DEFAULT_TICK_SECONDS), ("0", 0), ("2.5", 2.5), ("42", 42)])
def test_the_length_of_a_tick_can_be_set(monkeypatch, given, seconds):
    if given is None:
        monkeypatch.delenv("QUEUE_PIPELINE_TICK_SECONDS", raising=False)
    else:
        monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", given)
    assert tick_seconds() == seconds


@pytest.mark.parametrize("given", ["-1", "43", "soon", "", "nan"])
def test_a_tick_that_dagster_would_cut_off_is_refused(monkeypatch, given):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", given)
    with pytest.raises(ConfigurationError, match=r"QUEUE_PIPELINE_TICK_SECONDS is .*; give 0 to 42 seconds"):
        tick_seconds()
