"""The transform without a database: messages in, results out."""

from acme.defs.shop.transform import Order, write_invoices

from queue_pipeline import QueuePipeline
from queue_pipeline.testing import run_transform

PIPELINE = QueuePipeline(
    name="orders", input_queue="orders", output_queues=["invoices"], transform=write_invoices, body_schema=Order
)


def test_an_order_becomes_an_invoice_and_one_without_a_tax_fails(queue_spark):
    """Both in one batch: the message that fails does not hold up the other."""
    orders = [{"id": "A-1", "country": "AT", "net": 100}, {"id": "A-2", "country": "NZ", "net": 100}]
    result = run_transform(PIPELINE, orders, spark=queue_spark)
    assert result.bodies("invoices") == [{"order_id": "A-1", "total": 120.0}]
    assert [failure.error for failure in result.failures] == ["no tax is known for NZ"]
