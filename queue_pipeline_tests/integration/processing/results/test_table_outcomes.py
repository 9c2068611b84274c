"""Rows for the user's own tables as outcomes: `add_to` and `append_to`, on both routes a batch can take."""

from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

from queue_pipeline.errors import QueueNotFoundError, UniqueIndexMissingError
from queue_pipeline.processing.declaration.outcomes import add_to, append_to, each, fail, send
from queue_pipeline.processing.errors import TransformError

DAY = date(2024, 5, 31)


def order(n, country="AT", amount="1.50", day="2024-05-31"):
    return {"n": n, "country": country, "amount": amount, "day": day}


def totalled(*others):
    """Sends each order on, adds it to the totals of its country and day, and appends its number."""

    def transform(messages):
        payload = F.col("payload")
        return messages.select(
            "origin",
            each(
                send("billing", json=F.struct(payload.n.alias("n"))),
                add_to(
                    "totals",
                    key={"country": payload.country, "day": payload.day},
                    add={"orders": 1, "revenue": payload.amount},
                ),
                append_to("seen", {"n": payload.n, "token": payload.country}),
                *(other() for other in others),
            ),
        )

    return transform


def test_what_messages_add_to_a_key_is_summed_up_and_written_with_the_sends(routed):
    routed.fill(order(1), order(2, amount="2.25"), order(3, "DE", "10.00"), order(4, day="2024-06-01"))
    report = routed.process(totalled())
    assert (report.messages, report.sent, report.failed) == (4, 4, [])
    assert report.table_rows == 3 + 4, "one row for each key, and one for each message that appends"
    assert routed.totals() == [
        ("AT", DAY, 2, Decimal("3.75")),
        ("AT", date(2024, 6, 1), 1, Decimal("1.50")),
        ("DE", DAY, 1, Decimal("10.00")),
    ]
    assert routed.rows("seen") == [(1, "AT"), (2, "AT"), (3, "DE"), (4, "AT")]
    assert sorted(body["n"] for body in routed.sent()) == [1, 2, 3, 4]
    assert (routed.transport.peek("orders"), routed.transport.claims.list()) == (0, [])


def test_batches_of_a_run_add_up(routed):
    routed.fill(*(order(n, "AT" if n % 2 else "DE") for n in range(20)))
    reports = routed.drain(totalled(), batch_messages=5, max_concurrency=2)
    assert [report.messages for report in reports] == [5, 5, 5, 5]
    assert routed.totals() == [("AT", DAY, 10, Decimal("15.00")), ("DE", DAY, 10, Decimal("15.00"))]
    assert [n for n, _ in routed.rows("seen")] == list(range(20))


def test_a_message_that_fails_adds_and_appends_nothing(routed):
    """It fails by its transform, by its body, or because its key is null."""
    routed.fill(order(1), order(2), {**order(3), "amount": "a lot"}, order(4, None), order(5))
    report = routed.process(totalled(lambda: fail("two is refused", when=F.col("payload.n") == 2)))
    assert (report.messages, report.sent, len(report.failed)) == (5, 2, 3)
    assert routed.totals() == [("AT", DAY, 2, Decimal("3.00"))]
    assert routed.rows("seen") == [(1, "AT"), (5, "AT")]
    assert sorted(body["n"] for body in routed.sent()) == [1, 5]
    (two, three, four) = routed.reasons()
    assert two == (2, "two is refused")
    assert three[0] == 3
    assert three[1].startswith("amount: ")
    assert four == (4, "table totals: country is part of the key and is null; give every row a whole key")


def test_a_row_is_written_only_where_its_condition_holds(routed):
    def transform(messages):
        n = F.col("payload.n")
        return messages.select("origin", each(append_to("seen", {"n": n, "token": "odd"}, when=n % 2 == 1)))

    routed.fill(order(1), order(2), order(3))
    assert routed.process(transform).table_rows == 2
    assert routed.rows("seen") == [(1, "odd"), (3, "odd")]
    routed.fill(order(4))
    assert routed.process(transform).table_rows == 0


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_rows_and_sends_come_from_the_same_evaluation(routed, is_shuffled):
    routed.create("drawn", "n bigint, token text, number double precision")

    def transform(messages):
        drawn = messages.withColumn("token", F.expr("uuid()")).withColumn("number", F.rand())
        if is_shuffled:
            drawn = drawn.repartition(3)
        values = {"n": F.col("payload.n"), "token": F.col("token"), "number": F.col("number")}
        return drawn.select(
            "origin",
            each(
                send("billing", json=F.struct(*(value.alias(name) for name, value in values.items()))),
                append_to("drawn", values),
            ),
        )

    routed.fill(*(order(n) for n in range(20)))
    routed.process(transform)
    sent = sorted((body["n"], body["token"], body["number"]) for body in routed.sent())
    assert routed.rows("drawn") == sent
    assert len({token for _, token, _ in sent}) == 20


def test_a_completion_that_is_rolled_back_writes_no_rows(routed):
    routed.fill(order(1), order(2))
    claim = routed.transport.claim("orders", "me", 100)

    def to_nowhere(messages):
        payload = F.col("payload")
        return messages.select(
            "origin",
            each(
                send("nowhere", json=F.struct(payload.n.alias("n"))),
                append_to("seen", {"n": payload.n, "token": "rolled back"}),
            ),
        )

    with pytest.raises(QueueNotFoundError, match="nowhere"):
        routed.process(to_nowhere, claim, output_queues=["nowhere"])
    assert (routed.rows("totals"), routed.rows("seen")) == ([], [])
    assert [one.messages for one in routed.transport.claims.list()] == [2]
    routed.process(totalled(), claim)
    assert routed.totals() == [("AT", DAY, 2, Decimal("3.00"))]
    assert len(routed.sent()) == 2


def test_rows_that_cannot_be_written_send_nothing(routed):
    """The second table has no unique index on the key; the rows of the first are rolled back with it."""
    routed.create("loose", "name text, orders bigint")

    def transform(messages):
        n = F.col("payload.n")
        return messages.select(
            "origin",
            each(
                send("billing", json=F.struct(n.alias("n"))),
                append_to("seen", {"n": n, "token": "rolled back"}),
                add_to("loose", key={"name": "all"}, add={"orders": 1}),
            ),
        )

    routed.fill(order(1))
    with pytest.raises(UniqueIndexMissingError, match="loose"):
        routed.process(transform)
    assert (routed.rows("seen"), routed.rows("loose"), routed.sent()) == ([], [], [])
    assert [one.messages for one in routed.transport.claims.list()] == [1]


def test_values_of_every_kind_arrive_exactly(routed):
    columns = "n bigint, large numeric(38, 18), day date, name text, empty text, missing bigint, share double precision"
    routed.create("kinds", f"{columns}, fixed text, price numeric(10, 2), since date")

    def transform(messages):
        payload = F.col("payload")
        values = {
            "n": payload.n,
            "large": payload.large,
            "day": payload.day,
            "name": payload["name"],
            "empty": None,
            "missing": payload.missing,
            "share": payload.share,
            "fixed": "fixed 'text'",
            "price": Decimal("12.30"),
            "since": DAY,
        }
        return messages.select("origin", each(append_to("kinds", values)))

    large, name = "12345678901234567890.123456789012345678", "Zoë 'quoted' \\ 😀"
    routed.fill(
        {"n": 2**63 - 1, "large": large, "day": "1999-12-31", "name": name, "missing": None, "share": 0.1},
        {"n": -(2**63), "large": None, "day": None, "name": "", "missing": 7, "share": None},
    )
    schema = "n bigint, large decimal(38,18), day date, name string, missing bigint, share double"
    routed.process(transform, body_schema=schema)
    least, most = routed.rows("kinds")
    is_file = routed.backend.name == "sqlite"
    price, since = (12.3, "2024-05-31") if is_file else (Decimal("12.30"), DAY)
    assert least == (-(2**63), None, None, "", None, 7, None, "fixed 'text'", price, since)
    exact, day = (float(large), "1999-12-31") if is_file else (Decimal(large), date(1999, 12, 31))
    assert (most[0], most[2:]) == (2**63 - 1, (day, name, None, None, 0.1, "fixed 'text'", price, since))
    assert most[1] == (pytest.approx(exact) if is_file else exact)


def test_sums_are_exact_beyond_64_bits_and_count_nulls_as_nothing(routed):
    routed.create("sums", "name text PRIMARY KEY, whole numeric(30), exact numeric(38, 2), empty bigint")

    def transform(messages):
        payload = F.col("payload")
        add = {"whole": payload.n, "exact": payload.amount, "empty": F.lit(None).cast("bigint")}
        return messages.select("origin", each(add_to("sums", key={"name": "all"}, add=add)))

    routed.fill(*({"n": 2**62, "amount": amount} for amount in ("0.10", "0.20", None)))
    routed.process(transform)
    ((name, whole, exact, empty),) = routed.rows("sums")
    assert (name, empty or 0) == ("all", 0)
    if routed.backend.name == "sqlite":
        assert (whole, exact) == (pytest.approx(3 * 2**62), pytest.approx(0.3))
    else:
        assert (whole, exact) == (3 * 2**62, Decimal("0.30"))


def test_several_outcomes_can_add_to_one_key(routed):
    def transform(messages):
        payload = F.col("payload")
        key = {"country": payload.country, "day": payload.day}
        return messages.select(
            "origin",
            each(
                add_to("totals", key=key, add={"orders": 1, "revenue": payload.amount}),
                add_to("totals", key=key, add={"orders": 10, "revenue": -payload.amount}, when=payload.n > 1),
                add_to("totals", key=key, add={"orders": 100}),
            ),
        )

    routed.fill(order(1), order(2), order(3))
    routed.process(transform)
    assert routed.totals() == [("AT", DAY, 323, Decimal("1.50"))]


def test_rows_of_a_group_belong_to_its_oldest_message(routed):
    def transform(messages):
        grouped = messages.groupBy("payload.country").agg(F.min("origin").alias("origin"), F.count("*").alias("orders"))
        country = F.col("country")
        return grouped.select(
            "origin",
            each(
                send("billing", json=F.struct("country", "orders")),
                add_to("totals", key={"country": country, "day": DAY}, add={"orders": F.col("orders"), "revenue": 0}),
            ),
        )

    routed.fill(order(1), order(2, "DE"), order(3), order(4, "DE"), order(5))
    routed.process(transform)
    assert routed.totals() == [("AT", DAY, 3, Decimal(0)), ("DE", DAY, 2, Decimal(0))]
    assert sorted((body["country"], body["orders"]) for body in routed.sent()) == [("AT", 3), ("DE", 2)]


@pytest.mark.parametrize("mode", ["receive_only", "sends_atomic_with_receive"])
def test_rows_are_written_with_the_completion_in_every_mode_that_has_one(routed, mode):
    routed.fill(order(1), order(2))
    assert routed.process(totalled(), transaction_mode=mode).table_rows == 3
    assert routed.totals() == [("AT", DAY, 2, Decimal("3.00"))]
    assert len(routed.sent()) == 2


def test_rows_are_refused_in_the_mode_that_has_no_completion_to_write_them_with(routed):
    """Its claim ends before the messages are processed: rows would be lost without an error."""
    routed.fill(order(1))
    with pytest.raises(TransformError, match="unreliable"):
        routed.process(totalled(), transaction_mode="unreliable", route="local")
    assert (routed.rows("totals"), routed.rows("seen"), routed.sent()) == ([], [], [])
