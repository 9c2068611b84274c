"""The contract of a transform, with a real Spark over batches that are made by hand."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.declaration.outcomes import Append, Merge, Results, each, fail, reply, send
from queue_pipeline.processing.declaration.pipeline import Output
from queue_pipeline.processing.errors import TransformError
from queue_pipeline.processing.results.sorting import NO_REPLY_ADDRESS
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing.transforming import batch, failures, ids, number, numbered, run, sent, x


def test_a_plain_frame_goes_to_the_only_output_queue(spark):
    result = run(spark, lambda messages: messages.select("origin", "body"), numbered(2), [Output(queue="billing")])
    assert sent(result) == [("billing", '{"n": 1}', "message1"), ("billing", '{"n": 2}', "message2")]
    assert result.sent == 2


def test_a_transform_sees_all_that_is_known_of_a_message(spark):
    seen = {}

    def look(messages):
        seen["columns"] = messages.columns
        facts = F.struct("id", "row_version", "message_type", "attempt", F.col("headers")["Shop.N"].alias("own"))
        return messages.select("origin", facts.alias("body"))

    result = run(spark, look, batch({}, failures=2))
    assert seen["columns"] == ["origin", "id", "row_version", "message_type", "headers", "body", "enqueued", "attempt"]
    ((_, body, _),) = sent(result)
    assert json.loads(body) == {"id": "row1", "row_version": 1, "message_type": "Shop.Order", "attempt": 3, "own": "1"}


def test_a_column_names_the_destination_of_each_row(spark):
    def split(messages):
        where = F.when(number() == 1, "billing").otherwise("shipping")
        return messages.select("origin", where.alias("destination"), F.struct(number().alias("n")).alias("body"))

    result = run(spark, split, numbered(2), ["billing", "shipping"])
    assert sent(result) == [("billing", '{"n":1}', "message1"), ("shipping", '{"n":2}', "message2")]


def test_sends_can_be_a_frame_for_each_queue_a_list_of_frames_replies_and_failures(spark):
    def several(messages):
        text = F.concat(F.lit("m"), number().cast("string"))
        return Results(
            sends={
                "billing": messages.where(number() < 3).select("origin", text.alias("body")),
                "shipping": messages.where(number() == 3).select("id", text.alias("body")),
            },
            replies=messages.where(number() == 1).select("origin", F.lit("thanks").alias("body")),
            failures=messages.where(number() == 2).select("origin", F.lit("two").alias("error")),
        )

    result = run(spark, several, numbered(3), ["billing", "shipping"])
    assert sent(result) == [
        ("billing", "m1", "message1"),
        ("shipping", "m3", "message3"),
        ("shop", "thanks", "message1"),
    ]
    assert failures(result) == [(2, "MessageRefused", "two")]

    def listed(messages):
        return Results([messages.select("origin", "body"), messages.select("origin", F.lit("copy").alias("body"))])

    result = run(spark, listed, numbered(1))
    assert [body for _, body, _ in sent(result)] == ["copy", '{"n": 1}']
    assert len(set(ids(result).values())) == 2


def every_outcome(messages):
    return messages.select(
        "origin",
        each(
            send("billing", json=F.struct(number().alias("n")), when=number() < 3, message_type="Own.Type"),
            send(F.lit("shipping"), body=F.lit("later"), when=number() == 1, delay=number() * 90),
            send("shipping", body=F.lit("short"), when=number() == 2, time_to_live=F.lit(1.5)),
            reply(body=F.lit("reply"), when=number().isin(3, 4)),
            fail(F.when(number() == 5, F.lit("five"))),
            send("billing", body=F.lit("not for five"), when=number() == 5),
        ),
    )


def test_each_row_may_have_several_outcomes_with_their_own_delay_lifetime_and_type(spark):
    result = run(spark, every_outcome, numbered(6), ["billing", "shipping"])
    assert sent(result) == [
        ("billing", '{"n":1}', "message1"),
        ("billing", '{"n":2}', "message2"),
        ("shipping", "later", "message1"),
        ("shipping", "short", "message2"),
        ("shop", "reply", "message3"),
    ]
    assert failures(result) == [(4, "MessageRefused", NO_REPLY_ADDRESS), (5, "MessageRefused", "five")]
    by = {(ready.destination, ready.delayed): ready for ready in result.ready}
    assert list(by["shipping", True].milliseconds) == [90_000]
    assert json.loads(by["shipping", True].headers[0])[wire.FORWARD_DESTINATION] == "shipping@here"
    assert list(by["shipping", False].milliseconds) == [1_500]
    assert list(by["billing", False].milliseconds) == [NEVER_EXPIRES] * 2
    assert json.loads(by["billing", False].headers[0])[wire.ENCLOSED_MESSAGE_TYPES] == "Own.Type"
    assert json.loads(by["shop", False].headers[0])[wire.MESSAGE_INTENT] == "Reply"


def test_delay_lifetime_headers_and_type_can_be_columns_of_a_plain_frame(spark):
    def plain(messages):
        return messages.select(
            "origin",
            "body",
            F.when(number() == 1, 2.5).alias("delay"),
            F.when(number() == 2, 60).alias("time_to_live"),
            F.create_map(F.lit("Shop.Own"), number().cast("string"), F.lit(wire.MESSAGE_ID), F.lit("x")).alias(
                "headers"
            ),
            F.when(number() == 1, "One").alias("message_type"),
        )

    result = run(spark, plain, numbered(2), [Output(queue="billing", message_type="Any")])
    later, now = sorted(result.ready, key=lambda ready: not ready.delayed)
    assert (list(later.milliseconds), list(now.milliseconds)) == ([2_500], [60_000])
    first, second = json.loads(later.headers[0]), json.loads(now.headers[0])
    assert (first["Shop.Own"], second["Shop.Own"]) == ("1", "2")
    assert (first[wire.MESSAGE_ID], second[wire.MESSAGE_ID]) == (later.ids[0], now.ids[0])
    assert (first[wire.ENCLOSED_MESSAGE_TYPES], second[wire.ENCLOSED_MESSAGE_TYPES]) == ("One", "Any")


def test_an_id_relates_a_result_to_its_message_as_well_as_its_origin_does(spark):
    def by_id(messages):
        prices = messages.sparkSession.createDataFrame([(1, 10), (2, 20)], "n int, price int")
        return messages.withColumn("n", number()).join(prices, "n").select("id", F.struct("price").alias("body"))

    def by_origin(messages):
        return messages.select("origin", F.struct((number() * 10).alias("price")).alias("body"))

    assert ids(run(spark, by_id, numbered(2))) == ids(run(spark, by_origin, numbered(2))) != {}


def test_several_results_of_a_message_have_ids_of_their_own_that_are_the_same_the_next_time(spark):
    def exploded(messages):
        items = F.explode(F.sequence(F.lit(1), number())).alias("item")
        return messages.select("origin", items).repartition(3).select("origin", F.struct("item").alias("body"))

    first, again = (ids(run(spark, exploded, numbered(4))) for _ in range(2))
    assert len(first) == len(set(first.values())) == 10
    assert first == again


def test_a_group_takes_the_origin_of_its_oldest_message(spark):
    def grouped(messages):
        return (
            messages.groupBy((number() % 2).alias("odd"))
            .agg(F.min("origin").alias("origin"), F.to_json(F.struct(F.sum(number()).alias("sum"))).alias("body"))
            .drop("odd")
        )

    result = run(spark, grouped, numbered(4))
    assert sent(result) == [("billing", '{"sum":4}', "message1"), ("billing", '{"sum":6}', "message2")]


def test_an_empty_result_is_accepted(spark):
    results = [
        run(spark, lambda messages: Results(), numbered(1)),
        run(spark, lambda messages: messages.select("origin", "body").where("false"), numbered(1)),
        run(spark, lambda messages: Results({}), numbered(1), outputs=()),
        run(spark, lambda messages: messages.select("origin", "body"), batch()),
    ]
    assert [(list(result.ready), dict(result.failures)) for result in results] == [([], {})] * 4


def test_bodies_that_do_not_fit_the_schema_fail_and_the_transform_never_sees_them(spark):
    def strict(messages):
        checked = F.when(F.col("payload.n").isNull(), F.raise_error(F.lit("saw a bad body"))).otherwise(
            F.col("payload.n")
        )
        return messages.select("origin", F.struct(checked.alias("n")).alias("body"))

    messages = batch({"n": 1}, b"no json", {"n": "text"}, {}, {"n": 5})
    result = run(spark, strict, messages, body_schema="n int not null")
    assert [body for _, body, _ in sent(result)] == ['{"n":1}', '{"n":5}']
    assert [(failed[0], failed[1]) for failed in failures(result)] == [(n, "MessageBodyUnreadable") for n in (2, 3, 4)]
    assert all(error for _, _, error in failures(result))


@pytest.mark.parametrize(
    "careless",
    [
        lambda messages: messages.limit(1).select("origin", "body"),
        lambda messages: messages.where("false").select("origin", "body"),
        lambda messages: Results(),
    ],
    ids=["reads one row", "reads nothing", "does nothing"],
)
def test_no_bad_body_is_lost_by_a_transform_that_does_not_read_all(spark, careless):
    messages = batch({"n": 1}, {"n": 2}, b"bad", {"n": 4}, b"worse")
    result = run(spark, careless, messages, body_schema="n int not null")
    assert [failed[0] for failed in failures(result)] == [3, 5]


def test_good_bodies_are_not_asked_for_again_and_a_batch_of_bad_ones_sends_nothing(spark):
    def plain(messages):
        return messages.select("origin", "body")

    assert failures(run(spark, plain, numbered(3), body_schema="n int not null")) == []
    nothing = run(spark, plain, batch(b"a", b"b"), body_schema="n int not null")
    assert (sent(nothing), len(nothing.failures)) == ([], 2)


def test_rows_for_own_tables_hold_values_of_the_types_that_tables_take(spark):
    columns = {
        "day": ("date '2026-03-04'", date(2026, 3, 4)),
        "moment": ("timestamp '2026-03-04 12:00:01.5Z'", datetime(2026, 3, 4, 12, 0, 1, 500_000, UTC)),
        "local": ("timestamp_ntz '2026-03-04 12:00:01'", datetime(2026, 3, 4, 12, 0, 1)),
        "price": ("cast(12.30 as decimal(12,2))", Decimal("12.30")),
        "large": ("9007199254740993L", 9007199254740993),
        "ratio": ("0.5D", 0.5),
        "name": ("'ä'", "ä"),
        "bytes": ("X'00ff'", b"\x00\xff"),
        "yes": ("true", True),
        "nothing": ("cast(null as string)", None),
    }

    def transform(messages):
        rows = messages.select("origin", *(F.expr(text).alias(name) for name, (text, _) in columns.items()))
        return Results(messages.select("origin", x()), tables=[Append("seen", rows)])

    (seen,) = run(spark, transform, numbered(1)).tables
    assert seen.columns == tuple(columns)
    assert seen.rows == [tuple(value for _, value in columns.values())]


def test_rows_for_own_tables_come_with_the_results_and_are_refused_in_unreliable(spark):
    def totals(messages):
        sums = messages.agg(F.min("origin").alias("origin"), F.lit("all").alias("name"), F.sum(number()).alias("total"))
        return Results(
            messages.select("origin", "body"),
            tables=[
                Append("seen", messages.select("origin", "id")),
                Merge("totals", sums, key=["name"], add=["total"]),
            ],
        )

    result = run(spark, totals, numbered(2))
    seen, merged = result.tables
    assert (seen.table, seen.columns, sorted(seen.rows), seen.key) == ("seen", ("id",), [("row1",), ("row2",)], ())
    assert (merged.rows, merged.key, merged.add) == ([("all", 3)], ("name",), ("total",))
    with pytest.raises(TransformError, match=r"rows for a table.*'unreliable'.*choose another mode"):
        run(spark, totals, numbered(1), transaction_mode="unreliable")
