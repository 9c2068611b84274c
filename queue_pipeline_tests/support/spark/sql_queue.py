"""What the tests of the data source `sql_queue` share: queues of numbers, which a job or a stream doubles."""

from pyspark.sql import functions as F

from queue_pipeline.processing.declaration.outcomes import each, send
from queue_pipeline.processing.source import source
from queue_pipeline.transport import new_message

FORMAT = source.FORMAT


def with_source(backend, spark):
    """A transport with the queues `orders` and `billing`, whose database the format means in this session."""
    transport = backend.transport()
    transport.install("orders", "billing")
    source.register_sql_queue(spark, transport)
    return transport


def fill(transport, count, first=0):
    transport.send("orders", [new_message(str(number)) for number in range(first, first + count)])


def load(spark, claim, columns=None):
    reader = spark.read.format(FORMAT).option("claim", source.claim_option(claim))
    return (reader.schema(columns) if columns else reader).load()


def save(frame, claim, **options):
    frame.write.format(FORMAT).option("claim", source.claim_option(claim)).options(**options).mode("append").save()


def doubled(messages):
    number = F.col("body").cast("string").cast("int")
    return messages.select("origin", each(send("billing", body=(number * 2).cast("string"))))


def bodies(transport, queue="billing"):
    return sorted(int(shown.body) for shown in transport.show(queue, 10_000))


def is_idle(backend, transport):
    outbox = backend.sql(transport, f"SELECT count(*) FROM {transport.book.own('QueueOutbox').qualified}")[0][0]
    return (outbox, transport.claims.list(), transport.peek("orders")) == (0, [], 0)
