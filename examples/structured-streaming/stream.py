"""Two streams: orders of a queue become invoices in another queue, and invoices become Parquet files."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queue_pipeline import each, fail, messages_of, send

ORDER = "id string NOT NULL, country string NOT NULL, net decimal(12, 2) NOT NULL"
INVOICE = "order_id string NOT NULL, country string NOT NULL, total decimal(12, 2) NOT NULL"


def stream_of(spark: SparkSession, queue: str, body_schema: str) -> DataFrame:
    """The messages of a queue as a stream; a micro-batch takes them off the queue when it ends."""
    stream = spark.readStream.format("sql_queue").option("queue", queue).option("stream", f"from {queue}").load()
    return messages_of(stream, body_schema)


def write_invoices(spark: SparkSession) -> None:
    """From queue to queue: the invoices and the end of their orders are one transaction."""
    messages = stream_of(spark, "orders", ORDER)
    order, problem = messages.payload, messages.problem
    invoice = F.struct(
        order.id.alias("order_id"), order.country, (order.net * 120 / 100).cast("decimal(12, 2)").alias("total")
    )
    outcomes = messages.select(
        "origin",
        # `problem` says what is wrong with a body that does not fit the schema, and is null for all others.
        each(send("invoices", json=invoice, when=problem.isNull()), fail(problem, error_type="BadOrder")),
    )
    sink = outcomes.writeStream.format("sql_queue").option("stream", "from orders")
    sink.option("checkpointLocation", "checkpoints/orders").trigger(availableNow=True).start().awaitTermination()


def archive_invoices(spark: SparkSession) -> None:
    """From queue to files: an invoice leaves the queue when Spark has noted that its file is written."""
    invoices = stream_of(spark, "invoices", INVOICE).where("problem IS NULL").select("payload.*")
    sink = invoices.writeStream.format("parquet").option("path", "archive")
    sink.option("checkpointLocation", "checkpoints/invoices").trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").appName("shop").getOrCreate()
    write_invoices(spark)
    archive_invoices(spark)
    totals = spark.read.parquet("archive").groupBy("country").agg(F.sum("total").alias("total"))
    for row in totals.sort("country").collect():
        print(f"{row.country}: {row.total}")
