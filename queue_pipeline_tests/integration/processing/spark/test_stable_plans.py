"""The plans of a transform with lambda functions, as they are sent to a real Spark."""

import re

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.claimed_batch import SCHEMA
from queue_pipeline.processing.batch.messages_frame import messages_frame
from queue_pipeline.processing.declaration.contract import check_returned, returned_by
from queue_pipeline.processing.declaration.pipeline import QueuePipeline


def total(messages):
    """Functions within functions, whose variables need names of their own."""
    parts = F.split(F.col("body").cast("string"), ",").cast("array<int>")
    doubled = F.transform(parts, lambda part: F.aggregate(F.array(part, part), F.lit(0), lambda sum, x: sum + x))
    body = F.aggregate(doubled, F.lit(0), lambda sum, part: sum + part, lambda sum: sum.cast("string"))
    return messages.select("id", body.alias("body"))


PIPELINE = QueuePipeline(name="orders", input_queue="orders", transform=total, output_queues=["billing"])


@pytest.fixture
def messages(spark):
    """Two messages as a transform sees them, with some numbers each."""
    rows = [
        {"id": f"row{n}", "row_version": n, "headers": "{}", "body": body, "message_id": f"message{n}"}
        for n, body in enumerate([b"1,2", b"3,4,5"], 1)
    ]
    return messages_frame(spark.createDataFrame(pa.Table.from_pylist(rows, SCHEMA)), 1)


def plan(spark, frame):
    """The plan as text, without the numbers that the client gives to its nodes; Spark does not compile those."""
    return re.sub(r"plan_id: \d+", "plan_id", str(frame._plan.to_proto(spark.client)))


def variables(text):
    return set(re.findall(r'name_parts: "(\w+_\d+)"', text))


def test_every_call_of_a_transform_makes_the_same_plan(spark, messages):
    plans = {plan(spark, returned_by(PIPELINE, messages).outcomes) for _ in range(3)}
    assert len(plans) == 1
    assert len(variables(plans.pop())) == 6, "every variable has a name of its own"


def test_without_stable_names_every_call_makes_another_plan(spark, messages):
    """Else the test before would show nothing."""
    plans = [plan(spark, check_returned(PIPELINE, messages, total(messages)).outcomes) for _ in range(2)]
    assert plans[0] != plans[1]
    assert not variables(plans[0]) & variables(plans[1])


def test_functions_within_functions_compute_what_they_should(messages):
    for _ in range(2):
        rows = returned_by(PIPELINE, messages).outcomes.toArrow().to_pylist()
        assert {row["origin"]["id"]: row["_0"]["body"] for row in rows} == {"row1": b"6", "row2": b"24"}
