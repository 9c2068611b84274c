"""The private parts of PySpark do what they are used for, on the session of the suite."""

import grpc  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.executors import is_narrow
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.internals import calls, parts
from queue_pipeline.processing.spark.internals.calls import (
    collected,
    endpoint,
    physical_plan,
    retry_while,
    spark_schema,
)
from queue_pipeline.processing.spark.internals.parts import PrivatePart, missing_parts


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch):
    monkeypatch.setattr(parts, "_missing", {})
    yield
    assert missing_parts() == {}


@pytest.fixture
def session(spark):
    with AttemptSessions(lambda: spark).session() as session:
        yield session


def test_rows_are_collected_with_a_struct_that_is_null(session):
    frame = session.createDataFrame([(1, (2,))], "n int, s struct<x int>").withColumn(
        "s", F.when(F.col("n") == 2, F.col("s"))
    )
    assert collected(frame).to_pylist() == [{"n": 1, "s": None}]


def test_the_plan_shows_whether_rows_stay_in_their_partition(session):
    rows = session.range(0, 4, 1, 2)
    assert is_narrow(physical_plan(rows.select(F.col("id") + 1)))
    assert not is_narrow(physical_plan(rows.groupBy("id").count()))


def test_the_endpoint_of_a_server_is_where_its_client_connects(spark):
    host, port = endpoint(spark)
    assert (host, port) == (spark.client.host, port) and port > 0


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_client_tries_again_while_the_condition_holds(session, goes_on):
    class Unavailable(grpc.RpcError):
        def code(self):
            return grpc.StatusCode.UNAVAILABLE

    retry_while(session, lambda: goes_on, max_retries=3)
    (policy,) = session.client.get_retry_policies()
    assert policy.max_retries == 3
    assert policy.can_retry(Unavailable()) is goes_on


def test_an_arrow_schema_is_the_same_after_a_round_trip_through_spark(session):
    schema = pa.schema([pa.field("at", pa.timestamp("us", "UTC")), pa.field("local", pa.timestamp("us"))])
    assert calls.arrow_schema(spark_schema(schema)) == schema


def test_without_the_private_api_rows_are_collected_through_the_public_one(session, monkeypatch):
    monkeypatch.setattr(calls, "CONNECT_ARROW", PrivatePart("_nothing", "speed"))
    assert collected(session.range(3)).to_pylist() == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert missing_parts() == {"_nothing": "speed"}
    parts._missing.clear()


def test_without_a_plan_rows_are_taken_to_move(session, monkeypatch):
    monkeypatch.setattr(calls, "CONNECT_PLAN", PrivatePart("_nothing", "speed"))
    assert not is_narrow(physical_plan(session.range(3)))
    parts._missing.clear()
