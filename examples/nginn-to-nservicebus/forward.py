"""Orders of an NGinn.MessageBus queue become orders of an NServiceBus queue, and their senders get an answer."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline import Output, QueuePipeline, each, queue_definitions, reply, send


def forward(messages: DataFrame) -> DataFrame:
    """An order for NServiceBus, and a confirmation for the NGinn queue that the sender named."""
    order = messages.payload
    return messages.select(
        "origin",
        each(
            send("orders", json=order, headers={"Shop.OldLabel": messages.headers["_NG-Label"]}),
            reply(json=F.struct(order.OrderId), message_type="Old.OrderAccepted, Old"),
        ),
    )


orders = QueuePipeline(
    name="forward_orders",
    input_queue="sql://ShopDb/OldOrders",
    output_queues=[Output(queue="orders", message_type="Shop.OrderPlaced")],
    body_schema="OrderId string NOT NULL, Customer string NOT NULL",
    transform=forward,
    linger_seconds=0,
)

defs = queue_definitions([orders])
