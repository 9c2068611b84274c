"""What an attempt caches is forgotten at its end, on a Spark that all sessions share for days."""

import json
import os
import subprocess
import sys

import pytest
from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.outcomes import Results
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline_tests.support.processing.slots import Slots, declare

NAMES = ("prices", "rates", "costs")


@pytest.fixture(params=["local", "executors"])
def slots(postgresql, spark, request):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    return Slots(transport, spark, route=request.param)


def lookup(session, number):
    """A frame that every session plans in the same way."""
    return session.range(1000 + number).withColumn("price", F.col("id") * number)


def is_cached(session, number):
    return "InMemory" in lookup(session, number)._explain_string()


def by_frame(session):
    return [lookup(session, 1).cache(), lookup(session, 2).persist(StorageLevel.DISK_ONLY)]


def by_name(session):
    first, second, third = NAMES
    lookup(session, 1).createOrReplaceTempView(first)
    session.sql(f"CACHE TABLE {first}")
    lookup(session, 2).createOrReplaceTempView(second)
    session.catalog.cacheTable(second)
    session.sql(f"CACHE LAZY TABLE {third} AS SELECT * FROM {first}")
    return [session.table(name) for name in NAMES]


@pytest.mark.parametrize("cache", [by_frame, by_name])
def test_what_a_batch_caches_is_used_by_it_and_gone_with_it(slots, spark, cache):
    found = []

    def transform(messages):
        session = messages.sparkSession
        counts = [frame.count() for frame in cache(session)]
        found.append([is_cached(session, number) for number in (1, 2)])
        return messages.select("origin", F.lit(sum(counts)).cast("string").alias("body"))

    slots.process(transform)
    assert found == [[True, True]]
    assert [is_cached(spark, number) for number in (1, 2)] == [False, False]


def test_what_a_batch_that_fails_or_a_probe_caches_is_gone_with_it(slots, spark):
    def fails(messages):
        lookup(messages.sparkSession, 3).cache().count()
        raise ArithmeticError("the transform is broken")

    with pytest.raises(ArithmeticError):
        slots.process(fails)
    assert not is_cached(spark, 3)
    sessions = AttemptSessions(lambda: spark)
    assert isinstance(SparkTransformer(declare(transform=fails), sessions).probe(), ArithmeticError)
    assert not is_cached(spark, 3)


def test_a_cached_frame_of_messages_is_computed_once_for_several_frames(slots, tmp_path):
    folder = str(tmp_path)

    def noted(body):
        with open(os.path.join(folder, str(os.getpid())), "a") as calls:
            calls.write(f"{body}\n")
        return body

    def transform(messages):
        rows = messages.select("origin", F.udf(noted, "string")(F.col("body").cast("string")).alias("body")).cache()
        return Results(sends=[rows, rows.select("origin", F.upper("body").alias("body"))])

    assert sorted(slots.process(transform, 3)) == ["0", "0", "1", "1", "2", "2"]
    calls = [line for path in tmp_path.iterdir() if path.name.isdigit() for line in path.read_text().split()]
    assert sorted(calls) == ["0", "1", "2"]


def test_a_frame_with_two_columns_of_one_name_can_be_cached(spark):
    with AttemptSessions(lambda: spark).session() as session:
        frame = lookup(session, 4)
        both = frame.join(lookup(session, 5), "id", "left").select(frame.id, frame.id)
        assert both.cache().count() == 1004
        assert "InMemory" in both._explain_string()


def test_clearing_the_cache_in_one_attempt_leaves_that_of_another(spark):
    sessions = AttemptSessions(lambda: spark)
    with sessions.session() as one, sessions.session() as other:
        lookup(one, 6).cache()
        lookup(other, 7).cache()
        other.range(3).createOrReplaceTempView("numbers")
        other.sql("CACHE TABLE numbers")
        other.catalog.clearCache()
        assert [is_cached(one, number) for number in (6, 7)] == [True, False]
        assert other.table("numbers").count() == 3, "the views of the batch are still there"
    assert not is_cached(spark, 6)


def test_sessions_of_users_still_cache(spark):
    frame = lookup(spark, 8).cache()
    try:
        assert is_cached(spark, 8)
        with AttemptSessions(lambda: spark).session() as session:
            session.range(3).count()
        assert is_cached(spark, 8)
    finally:
        frame.unpersist()
    assert not is_cached(spark, 8)


def classic_caches():
    """Attempts in a process with a classic session; prints what Spark kept of them."""
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    sessions, manager = AttemptSessions(lambda: spark), spark._jsparkSession.sharedState().cacheManager()
    entries = []
    with sessions.session() as session:
        for cache in (by_frame, by_name):
            for frame in cache(session):
                frame.count()
        session.range(20).withColumn("token", F.expr("uuid()")).cache().count()
        entries.append(manager.numCachedEntries())
    entries.append(manager.numCachedEntries())
    print(json.dumps(entries))


@pytest.mark.slow
def test_a_classic_spark_also_drops_the_caches_of_an_attempt():
    # A process with a Connect session passes its mode on to those that it starts.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    ended = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import classic_caches; classic_caches()"],
        env={**inherited, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    inside, after = json.loads(ended.stdout.splitlines()[-1])
    assert inside >= 3
    assert after == 0
