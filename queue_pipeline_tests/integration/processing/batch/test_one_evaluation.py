"""A batch is computed once: what it sends and what it writes to tables come from the same rows, on both routes."""

import os
import uuid
from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.declaration.outcomes import Append, Merge, Results, add_to, append_to, each, fail, send
from queue_pipeline.processing.errors import TransformError

DAY = date(2024, 5, 31)


def order(n, country="AT", amount="1.50"):
    return {"n": n, "country": country, "amount": amount, "day": DAY.isoformat()}


def refusing(messages):
    """Sends every order on, and refuses those with an odd number."""
    odd = F.col("payload.n") % 2 == 1
    return messages.select(
        "origin", each(send("billing", json=F.struct("payload.n")), fail("odd numbers are refused", when=odd))
    )


def sent(routed):
    return sorted(body["n"] for body in routed.sent())


def test_a_function_is_called_once_for_each_message_however_many_outcomes_use_it(routed, tmp_path):
    folder = str(tmp_path)

    def drawn(n):
        with open(os.path.join(folder, str(os.getpid())), "a") as calls:
            calls.write(f"{n}\n")
        return str(uuid.uuid4())

    def transform(messages):
        # As PySpark's functions are by default: said to be deterministic, which this one is not.
        rows = messages.withColumn("token", F.udf(drawn, "string")("payload.n"))
        n, token = F.col("payload.n"), F.col("token")
        return rows.select(
            "origin",
            each(
                send("billing", json=F.struct(n.alias("n"), token.alias("token"))),
                append_to("seen", {"n": n, "token": token}),
                add_to("totals", key={"country": token, "day": DAY}, add={"orders": 1, "revenue": 0}),
                fail("a token of one letter", when=F.length(token) == 1),
            ),
        )

    routed.fill(*map(order, range(20)))
    routed.process(transform)
    calls = [int(line) for path in tmp_path.iterdir() if path.name.isdigit() for line in path.read_text().split()]
    assert sorted(calls) == list(range(20))
    tokens = sorted((body["n"], body["token"]) for body in routed.sent())
    assert routed.rows("seen") == tokens
    assert sorted(country for country, *_ in routed.totals()) == sorted(token for _, token in tokens)


def test_frames_for_tables_are_computed_in_the_query_of_the_sends(routed):
    """One query has one current time; two of them have two."""

    def transform(messages):
        now = F.date_format(F.current_timestamp(), "yyyy-MM-dd HH:mm:ss.SSSSSS")
        timed = messages.select("origin", F.col("payload.n").alias("n"), now.alias("token"))
        return Results(
            timed.select("origin", each(send("billing", json=F.struct("n", "token")))), tables=[Append("seen", timed)]
        )

    routed.fill(*map(order, range(5)))
    assert routed.process(transform).table_rows == 5
    assert len({body["token"] for body in routed.sent()}) == 1
    assert routed.rows("seen") == sorted((body["n"], body["token"]) for body in routed.sent())


def test_several_frames_share_random_values_that_are_computed_first(routed):
    def transform(messages):
        drawn = messages.select("origin", F.col("payload.n").alias("n"), F.expr("uuid()").alias("token"))
        drawn = drawn.localCheckpoint()
        return Results(
            drawn.select("origin", each(send("billing", json=F.struct("n", "token")))), tables=[Append("seen", drawn)]
        )

    routed.fill(*map(order, range(20)))
    routed.process(transform)
    assert routed.rows("seen") == sorted((body["n"], body["token"]) for body in routed.sent())


def test_frames_for_tables_write_nothing_for_a_message_that_fails(routed):
    def transform(messages):
        payload = F.col("payload")
        seen = messages.select("origin", payload.n.alias("n"), payload.country.alias("token"))
        counted = messages.select(
            "origin", payload.country.alias("country"), payload.day.alias("day"), F.lit(1).alias("orders"),
            payload.amount.alias("revenue"),
        )  # fmt: skip
        merged = Merge("totals", counted, key=["country", "day"], add=["orders", "revenue"])
        return Results(refusing(messages), tables=[Append("seen", seen), merged])

    routed.fill(*map(order, range(6)), {**order(8), "amount": "a lot"}, order(10, country=None))
    report = routed.process(transform)
    assert sent(routed) == [0, 2, 4]
    assert routed.rows("seen") == [(0, "AT"), (2, "AT"), (4, "AT")]
    assert routed.totals() == [("AT", DAY, 3, Decimal("4.50"))]
    assert report.table_rows == 4
    reasons = dict(routed.reasons())
    assert sorted(reasons) == [1, 3, 5, 8, 10]
    assert reasons[10] == "table totals: country is part of the key and is null; give every row a whole key"


def test_a_merge_replaces_and_adds(routed):
    routed.create("latest", "name text PRIMARY KEY, price numeric(20, 2), orders bigint")

    def transform(messages):
        payload = F.col("payload")
        rows = messages.select(
            "origin", payload.country.alias("name"), payload.amount.alias("price"), F.lit(1).alias("orders")
        )
        return Results(tables=[Merge("latest", rows, key=["name"], add=["orders"])])

    routed.fill(order(1), order(2, "DE", "2.00"))
    assert routed.process(transform).sent == 0
    routed.fill(order(3, "AT", "7.25"), order(4, "FR", "3.00"))
    routed.process(transform)
    found = [(name, Decimal(str(price)), orders) for name, price, orders in routed.rows("latest")]
    assert found == [("AT", Decimal("7.25"), 2), ("DE", Decimal("2.00"), 1), ("FR", Decimal("3.00"), 1)]
    assert routed.transport.peek("orders") == 0


def test_rows_of_a_message_that_the_batch_does_not_have_are_refused(routed):
    def transform(messages):
        stranger = F.col("origin").withField("row_version", F.col("origin.row_version") + 1_000_000)
        rows = messages.select(stranger.alias("origin"), F.col("payload.n").alias("n"), F.lit("x").alias("token"))
        return Results(refusing(messages), tables=[Append("seen", rows)])

    routed.fill(order(2))
    with pytest.raises(TransformError, match="belongs to no message of the batch"):
        routed.process(transform)
    assert (routed.rows("seen"), routed.sent()) == ([], [])


def without_origin(messages):
    return Append("seen", messages.select(F.col("payload.n").alias("n")))


def without_columns(messages):
    return Append("seen", messages.select("origin"))


def without_key(messages):
    return Merge("totals", messages.select("origin", F.lit(1).alias("orders")), key=["country"], add=["orders"])


def adding_texts(messages):
    return Merge("totals", messages.select("origin", "payload.n", "payload.country"), key=["n"], add=["country"])


def no_table(messages):
    return messages


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (without_origin, r"tables\[0\], for table seen, lacks the column origin, .* F\.min\('origin'\) for a group"),
        (without_columns, "for table seen, lacks any column of the table; it has none"),
        (without_key, "for table totals, lacks country; it has orders"),
        (adding_texts, "for table totals, adds up country, which is string; give a number"),
        (no_table, r"tables\[0\] is no Append\(table, frame\) or Merge\(table, frame, key\)"),
    ],
)
def test_a_frame_that_cannot_be_written_is_refused_by_name(routed, table, problem):
    routed.fill(order(2))
    with pytest.raises(TransformError, match=problem):
        routed.process(lambda messages: Results(refusing(messages), tables=[table(messages)]))
    assert (routed.rows("totals"), routed.rows("seen"), routed.sent()) == ([], [], [])
