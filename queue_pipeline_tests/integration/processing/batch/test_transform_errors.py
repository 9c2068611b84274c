"""Results of a transform that cannot be used: the error names what is wrong with them."""

import pytest
from pyspark.sql import functions as F

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.declaration.outcomes import Results, each, reply, send
from queue_pipeline.processing.errors import TransformError
from queue_pipeline_tests.support.processing.transforming import number, numbered, run, x


@pytest.mark.parametrize(
    ("transform", "says"),
    [
        (lambda messages: None, "it returned NoneType; return a DataFrame or Results"),
        (lambda messages: [messages], "it returned list"),
        (lambda messages: Results({"billing": 5}), "sends['billing'] is int, not a DataFrame"),  # type: ignore[dict-item]
        (
            lambda messages: messages.select("origin", x(), F.lit(1).alias("boddy")),
            "boddy; allowed: origin, id, destination, body",
        ),
        (lambda messages: messages.select(x()), "sends lacks the column origin (or id)"),
        (lambda messages: messages.select("origin"), "sends lacks the column body"),
        (
            lambda messages: messages.select(F.lit("x").alias("origin"), x()),
            "sends: origin is string; keep it as it is",
        ),
        (lambda messages: messages.select(F.struct("id").alias("origin"), x()), "sends: origin is struct<id:string>;"),
        (
            lambda messages: messages.select("origin", F.lit(1).alias("body")),
            "sends: body is int; give text, bytes, or a struct",
        ),
        (
            lambda messages: messages.select("origin", x(), F.lit("1").alias("delay")),
            "delay is string; give seconds as a number",
        ),
        (
            lambda messages: messages.select("origin", x(), F.lit(True).alias("time_to_live")),
            "time_to_live is boolean; give seconds",
        ),
        (lambda messages: Results(failures=messages.select("origin", x())), "failures lacks the column error"),
        (lambda messages: Results(replies=messages.select("origin")), "replies lacks the column body"),
        (lambda messages: messages.select("origin", "body", each(reply(body=x()))), "body; allowed: origin"),
        (lambda messages: messages.select("origin", x(), F.lit(1).alias("code")), "mean nothing there: code"),
        (
            lambda messages: Results(replies=messages.select("origin", F.lit("1").alias("code"))),
            "replies: code is string; give a whole number",
        ),
    ],
)
def test_a_result_that_cannot_be_sent_is_an_error_that_names_the_columns(spark, transform, says):
    with pytest.raises(TransformError) as caught:
        run(spark, transform, numbered(1))
    assert says in str(caught.value)
    assert str(caught.value).startswith("pipeline orders: the transform's result cannot be used: ")


def test_a_destination_has_to_be_named_and_known(spark):
    with pytest.raises(TransformError, match="lacks the column destination, and the pipeline has 2 output queues"):
        run(spark, lambda messages: messages.select("origin", x()), numbered(1), ["billing", "shipping"])
    with pytest.raises(TransformError, match=r"sends to biling, which is not among its output_queues \(billing\)"):
        run(spark, lambda messages: messages.select("origin", x(), F.lit("biling").alias("destination")), numbered(1))


def test_a_result_that_belongs_to_no_message_of_the_batch_is_an_error(spark):
    for transform in (
        lambda messages: messages.select(F.lit("foreign").alias("id"), x()),
        lambda messages: messages.select(
            F.col("origin").withField("id", F.lit("foreign")).withField("row_version", F.lit(-7)).alias("origin"), x()
        ),
        lambda messages: Results(failures=messages.select(F.lit("foreign").alias("id"), F.lit("no").alias("error"))),
    ):
        with pytest.raises(
            TransformError, match=r"a result of the transform belongs to no message of the batch \(id foreign\)"
        ):
            run(spark, transform, numbered(1))


def test_a_result_whose_origin_was_lost_is_an_error(spark):
    def lost(messages):
        others = messages.sparkSession.createDataFrame([(1,), (7,)], "n int")
        kept = messages.select("origin", number().alias("n")).join(others, "n", "right")
        return kept.select("origin", F.struct("n").alias("body"))

    with pytest.raises(TransformError, match="a result of the transform belongs to no message of the batch"):
        run(spark, lost, numbered(2))


def test_outcomes_that_contradict_themselves_are_refused_where_they_are_written(spark):
    with pytest.raises(ConfigurationError, match="send to 'billing': delayed delivery with a time to live"):
        send("billing", body=x(), delay=1, time_to_live=1)
    with pytest.raises(ConfigurationError, match=r"send to 'billing': give either json= .* or body="):
        send("billing")
    with pytest.raises(ConfigurationError, match=r"reply: give either json= .* or body="):
        reply(body=x(), json=x())
    for contradiction in ({"body": x()}, {"json": x()}, {"message_type": "Shop.Answer"}):
        with pytest.raises(ConfigurationError, match="reply: a code has neither body nor type"):
            reply(code=0, **contradiction)
    with pytest.raises(ConfigurationError, match="reply: delayed delivery with a time to live"):
        reply(code=0, delay=1, time_to_live=1)
    with pytest.raises(ConfigurationError, match=r"each\(\) needs at least one outcome"):
        each()
