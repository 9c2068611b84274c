"""Schemas of frames that a real Spark Connect server is asked about once, and of those that it is asked about again."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing import known_schemas
from queue_pipeline.processing.claimed_batch import SCHEMA
from queue_pipeline.processing.handover import SMALLEST_FILE
from queue_pipeline.processing.known_schemas import schema_of
from queue_pipeline.processing.messages_frame import messages_frame
from queue_pipeline.processing.stable_names import stable_names


@pytest.fixture(autouse=True)
def nothing_known():
    known_schemas._known.clear()
    yield
    known_schemas._known.clear()


@pytest.fixture
def asked(spark, monkeypatch):
    """How often the server was asked for a schema."""
    questions, schema = [], spark.client.schema
    monkeypatch.setattr(spark.client, "schema", lambda plan: questions.append(plan) or schema(plan))
    return questions


def batch(count=2, size=2):
    body = b'{"n": 1, "text": "' + b"x" * size + b'"}'
    rows = [
        {"id": f"row{n}", "row_version": n, "headers": "{}", "body": body, "message_id": f"message{n}"}
        for n in range(count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def ask(spark, transform, rows=None, **options):
    """The schema of what becomes of a batch, as a run asks for it, beside what the server says."""
    with messages_frame(spark, batch() if rows is None else rows, 1, **options) as messages, stable_names():
        returned = transform(messages.frame)
        known = schema_of(returned)
        returned._cached_schema = None
        return known, returned


def total(frame):
    doubled = F.transform(F.array("payload.n"), lambda n: n * 2)
    return frame.select("origin", F.aggregate(doubled, F.lit(0), lambda sum, n: sum + n).alias("total"))


def number(frame):
    return frame.select("payload.n")


@pytest.mark.parametrize("size", [2, SMALLEST_FILE], ids=["sent", "as a file"])
def test_the_same_plan_over_another_batch_is_not_asked_about_again(spark, asked, size):
    first, _ = ask(spark, total, batch(2, size), body_schema="n int")
    assert first.simpleString().endswith("total:int>")
    before = len(asked)
    for count in (1, 3):
        again, _ = ask(spark, total, batch(count, size), body_schema="n int")
        assert again == first
    assert before == 1
    assert len(asked) == before


def test_another_plan_is_asked_about(spark, asked):
    ask(spark, number, body_schema="n int")
    longer, _ = ask(spark, number, body_schema="n bigint")
    renamed, _ = ask(spark, lambda frame: total(frame).withColumnRenamed("total", "sum"), body_schema="n int")
    literal, _ = ask(spark, lambda frame: frame.select(F.lit(1).alias("x")))
    other, _ = ask(spark, lambda frame: frame.select(F.lit(1).cast("double").alias("x")))
    assert (longer["n"].dataType.simpleString(), renamed.names[-1]) == ("bigint", "sum")
    assert (literal["x"].dataType.simpleString(), other["x"].dataType.simpleString()) == ("int", "double")
    assert len(asked) == 5


def test_what_is_known_is_what_the_server_says(spark):
    lookup = spark.createDataFrame(pa.table({"id": ["row1"], "name": ["x"]}))
    for transform in (
        lambda frame: frame,
        lambda frame: frame.join(lookup, "id", "left").select("origin", "name"),
        lambda frame: frame.groupBy("message_type").agg(F.min("origin").alias("origin"), F.count("*").alias("n")),
        lambda frame: frame.select(frame["id"], frame.body).unionByName(frame.select("id", "body")).distinct(),
        lambda frame: frame.select(F.explode(F.array(F.lit(1), F.lit(2))).alias("n"), "headers").where("n > 1"),
        lambda frame: frame.orderBy("id").limit(1).drop("body").withColumn("more", F.struct("id", "attempt")),
    ):
        first, _ = ask(spark, transform)
        known, frame = ask(spark, transform)
        assert known == first
        with messages_frame(spark, batch(), 1) as again:
            assert transform(again.frame).schema == known, frame


def test_a_view_that_changes_is_asked_about_every_time(spark, asked):
    """So is everything else whose columns are not in the plan."""
    view = "known_schemas_lookup"
    try:
        found = []
        for kind in ("int", "string"):
            spark.range(1).select(F.lit("1").cast(kind).alias("value")).createOrReplaceTempView(view)
            found.append(ask(spark, lambda frame: frame.crossJoin(spark.table(view)).select("value"))[0])
            found.append(
                ask(spark, lambda frame: frame.crossJoin(spark.sql(f"SELECT * FROM {view}")).select("value"))[0]
            )
    finally:
        spark.catalog.dropTempView(view)
    assert [schema["value"].dataType.simpleString() for schema in found] == ["int", "int", "string", "string"]
    assert len(asked) == 4


def test_files_of_somebody_else_are_asked_about_every_time(spark, asked, tmp_path):
    path = tmp_path / "batch.parquet"
    found = []
    for values in ([1], ["a"]):
        pa.parquet.write_table(pa.table({"value": values}), path)
        found.append(ask(spark, lambda frame: frame.crossJoin(spark.read.parquet(str(path))).select("value"))[0])
    assert [schema["value"].dataType.simpleString() for schema in found] == ["bigint", "string"]
    assert len(asked) == 2


def test_only_the_last_plans_are_remembered(spark, asked, monkeypatch):
    monkeypatch.setattr(known_schemas, "MOST", 2)
    for number in (1, 2, 3, 3, 1):
        ask(spark, lambda frame, number=number: frame.select(F.lit("x").alias(f"x{number}")))
    assert len(asked) == 4
    assert len(known_schemas._known) == 2
