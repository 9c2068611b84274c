"""A transform on a real Spark, over a batch that is made by hand, and what comes out of it."""

import json

import pyarrow as pa
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.claimed_batch import SCHEMA, ClaimedBatch
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.envelopes import sending_of
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import Claim
from queue_pipeline.transport.messages import headers as wire


def number():
    """What a message says; columns can only be made once there is a session."""
    return F.get_json_object(F.col("body").cast("string"), "$.n").cast("int")


def x():
    return F.lit("x").alias("body")


def batch(*bodies, failures=0):
    """Messages with these bodies, numbered from 1; those with an odd number can be replied to."""
    rows = [
        {
            "id": f"row{n}",
            "row_version": n,
            "headers": json.dumps({"Shop.N": str(n), wire.MESSAGE_ID: f"message{n}"}),
            "body": body if isinstance(body, bytes) else json.dumps(body).encode(),
            "message_id": f"message{n}",
            "correlation_id": None,
            "conversation_id": f"talk{n}",
            "reply_to": "shop" if n % 2 else None,
            "message_type": "Shop.Order",
            "enqueued": None,
        }
        for n, body in enumerate(bodies, 1)
    ]
    messages = pa.Table.from_pylist(rows, SCHEMA)
    return ClaimedBatch(Claim("c", "orders", "me", 1, len(rows), 0, 1, failures=failures), messages, ())


def numbered(count):
    return batch(*({"n": n} for n in range(1, count + 1)))


def declare(transform, outputs=("billing",), **options):
    return QueuePipeline(
        name="orders", input_queue="orders", transform=transform, output_queues=list(outputs), **options
    )


def run(spark, transform, messages, outputs=("billing",), **options):
    pipeline = declare(transform, outputs, **options)
    sending = sending_of(pipeline, "{}@here".format, {})
    return SparkTransformer(pipeline, AttemptSessions(lambda: spark)).transform(messages, sending)


def sent(result):
    """What is sent, as (queue, body, related to)."""
    rows = []
    for ready in result.ready:
        for text, body in zip(ready.headers, ready.bodies, strict=True):
            rows.append((ready.destination, body.decode(), json.loads(text)[wire.RELATED_TO]))
    return sorted(rows)


def ids(result):
    return {
        (ready.destination, body, json.loads(text)[wire.RELATED_TO]): identity
        for ready in result.ready
        for identity, text, body in zip(ready.ids, ready.headers, ready.bodies, strict=True)
    }


def failures(result):
    return sorted((version, failed.error_type, failed.message) for version, failed in result.failures.items())
