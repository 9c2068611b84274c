"""`format("sql_queue")` as a stream: a micro-batch is a claim, and its results end it."""

import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.worker_transport import executor_settings
from queue_pipeline.processing.declaration.outcomes import each, send
from queue_pipeline.processing.source import source
from queue_pipeline.processing.source.stream_writer import StreamOutcomeWriter
from queue_pipeline_tests.support.spark.sql_queue import FORMAT, bodies, doubled, fill, is_idle, load, save, with_source


@pytest.fixture
def transport(backend, spark):
    return with_source(backend, spark)


def stream(spark, **options):
    given = {"queue": "orders", "stream": "doubling", **options}
    return spark.readStream.format(FORMAT).options(**given).load()


def write(frame, folder, name="doubling", **options):
    writer = frame.writeStream.format(FORMAT).option("stream", name).option("checkpointLocation", str(folder))
    return writer.options(**options)


def finish(writer):
    """Process what is there, and end."""
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return query


def test_a_stream_from_queue_to_queue_is_completed_batch_by_batch(backend, transport, spark, tmp_path):
    fill(transport, 10)
    query = finish(write(doubled(source.messages_of(stream(spark, batch_messages=4))), tmp_path / "checkpoint"))
    assert query.exception() is None
    assert bodies(transport) == [2 * number for number in range(10)]
    assert is_idle(backend, transport)
    fill(transport, 3, 10)
    finish(write(doubled(source.messages_of(stream(spark))), tmp_path / "checkpoint"))
    assert bodies(transport) == [2 * number for number in range(13)]
    assert is_idle(backend, transport)


def forget_the_end_of_the_last_batch(checkpoint):
    """As a driver leaves it that is killed after the sink was done, before Spark wrote that down."""
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)


def test_a_batch_whose_end_spark_forgot_is_not_sent_again(backend, transport, spark, tmp_path):
    fill(transport, 10)
    finish(write(doubled(source.messages_of(stream(spark, batch_messages=4))), tmp_path / "checkpoint"))
    forget_the_end_of_the_last_batch(tmp_path / "checkpoint")
    source.register_sql_queue(spark, transport)
    fill(transport, 3, 10)
    finish(write(doubled(source.messages_of(stream(spark))), tmp_path / "checkpoint"))
    assert bodies(transport) == [2 * number for number in range(13)]
    assert is_idle(backend, transport)


def test_a_stream_to_another_sink_ends_its_claims_when_spark_is_done_with_them(backend, transport, spark, tmp_path):
    fill(transport, 10)
    frame = source.messages_of(stream(spark, batch_messages=4)).select(F.col("body").cast("string").alias("value"))
    files = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    finish(files.option("checkpointLocation", str(tmp_path / "checkpoint")))
    written = sorted(int(row.value) for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert written == list(range(10))
    assert is_idle(backend, transport)


def fail_at_a_batch(transport, spark, folder, *, same_spark=False):
    """Start a stream whose first batch throws; returns the claim that it leaves behind."""
    fill(transport, 6)
    broken = source.messages_of(stream(spark)).select(
        "origin", each(send("billing", body=F.raise_error(F.lit("no")).cast("string")))
    )
    query = write(broken, folder).trigger(availableNow=True).start()
    with pytest.raises(Exception, match="no"):
        query.awaitTermination(120)
    (held,) = transport.claims.list()
    assert (held.messages, held.owner.startswith("stream doubling ")) == (6, True)
    if not same_spark:
        # Another start of the stream, as in another process, has a name of its own.
        source.register_sql_queue(spark, transport)
    return held.held


@pytest.mark.parametrize("same_spark", [False, True])
def test_a_batch_that_fails_is_read_again_by_the_next_start(backend, transport, spark, tmp_path, same_spark):
    fail_at_a_batch(transport, spark, tmp_path / "checkpoint", same_spark=same_spark)
    finish(write(doubled(source.messages_of(stream(spark))), tmp_path / "checkpoint"))
    assert bodies(transport) == [0, 2, 4, 6, 8, 10]
    assert is_idle(backend, transport)


def test_a_batch_that_another_owner_took_meanwhile_is_left_to_it(backend, transport, spark, tmp_path):
    taken = transport.claims.adopt(fail_at_a_batch(transport, spark, tmp_path / "checkpoint"), "somebody else")
    finish(write(doubled(source.messages_of(stream(spark))), tmp_path / "checkpoint"))
    assert bodies(transport) == []
    save(doubled(source.messages_of(load(spark, taken))), taken)
    assert bodies(transport) == [0, 2, 4, 6, 8, 10]
    assert is_idle(backend, transport)


def test_a_task_without_results_ends_no_claim_of_another_query_of_the_same_name(sqlite):
    """A repeated micro-batch is empty, and all queries of a Connect server share its environment's source."""
    transport = sqlite.transport()
    transport.install("orders")
    fill(transport, 2)
    claim = transport.claim("orders", "stream doubling 1", 10)
    writer = StreamOutcomeWriter(executor_settings(transport), "doubling", "stream doubling 1")
    writer.commit([writer.write(iter(()))], 0)
    assert transport.claims.held_by("stream doubling 1") == [claim]


def test_a_batch_without_results_ends_when_spark_asks_for_the_next_one(backend, transport, spark, tmp_path):
    fill(transport, 6)
    nothing = source.messages_of(stream(spark, batch_messages=4)).where("message_id = 'none'")
    finish(write(doubled(nothing), tmp_path / "checkpoint"))
    assert bodies(transport) == []
    assert is_idle(backend, transport)


def test_results_without_a_claim_are_refused(transport, spark, tmp_path):
    """A zombie of an earlier start, or a sink of another name than the source: nothing is sent."""
    fill(transport, 2)
    query = write(doubled(source.messages_of(stream(spark))), tmp_path / "checkpoint", name="another").start()
    with pytest.raises(Exception, match="stream another: there are results, and no claim to complete"):
        query.awaitTermination(120)
    assert bodies(transport) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"stream": ""}, "stream: String should have at least 1 character"),
        ({"batch_messages": "0"}, "batch_messages: Input should be greater than or equal to 1"),
        ({"colour": "blue"}, "colour: Extra inputs are not permitted"),
    ],
)
def test_options_of_a_stream_are_checked(transport, spark, tmp_path, options, problem):
    with pytest.raises(Exception, match=problem):
        query = write(doubled(source.messages_of(stream(spark, **options))), tmp_path / "checkpoint").start()
        query.awaitTermination(60)
