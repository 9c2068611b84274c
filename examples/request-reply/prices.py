"""The service: a pipeline that replies to each request."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline import QueuePipeline, each, queue_definitions, reply


def answer(messages: DataFrame) -> DataFrame:
    """A price for some pieces; for none, only the number 404."""
    pieces = messages.payload.pieces
    price = F.struct(F.round(pieces * 2.99, 2).alias("price"))
    return messages.select(
        "origin",
        each(reply(json=price, message_type="Shop.Price", when=pieces > 0), reply(code=404, when=pieces <= 0)),
    )


prices = QueuePipeline(name="answer_prices", input_queue="prices", body_schema="pieces int NOT NULL", transform=answer)

defs = queue_definitions([prices])
