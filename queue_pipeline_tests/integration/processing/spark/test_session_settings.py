"""Settings of Spark that a transform or a project changes: results are the same on both backends."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.declaration.outcomes import Append, Results, add_to, append_to, each, fail, send
from queue_pipeline_tests.support.databases.backends import run_sql
from queue_pipeline_tests.support.processing.both_routes import fill, numbers, process

LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
ZONE = "spark.sql.session.timeZone"
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, UTC)


@pytest.fixture
def queues(postgresql):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error", "audit"])
    for table, columns in (
        ("moments", "name text, at timestamptz"),
        ("totals", "name text PRIMARY KEY, orders bigint"),
    ):
        postgresql.sql(transport, f"CREATE TABLE {transport.book.own(table).qualified} ({columns})")
    return transport


def rows(transport, table):
    with transport.transaction() as connection:
        return sorted(tuple(row) for row in run_sql(connection, f"SELECT * FROM {transport.book.own(table).qualified}"))


def text():
    return F.col("body").cast("string")


@pytest.mark.parametrize("zone", ["GMT+3", "UTC-07:30", "America/New_York"])
def test_a_time_for_a_table_is_the_same_instant_in_every_time_zone(queues, spark, route, zone):
    def transform(messages):
        messages.sparkSession.conf.set(ZONE, zone)
        at = F.timestamp_micros(F.lit(round(NOON.timestamp() * 1_000_000)))
        outcomes = each(send("billing", body=text()), append_to("moments", {"name": "outcome", "at": at}))
        frame = messages.limit(1).select("origin", F.lit("frame").alias("name"), at.alias("at"))
        return Results(messages.select("origin", outcomes), tables=[Append("moments", frame)])

    fill(queues, 1)
    report = process(queues, spark, route, transform)
    assert (report.sent, report.table_rows) == (1, 2)
    assert rows(queues, "moments") == [("frame", NOON), ("outcome", NOON)]


@pytest.mark.parametrize("schema", [None, "n INT NOT NULL, s STRING"])
def test_large_types_of_arrow_change_nothing(queues, spark, route, schema):
    def transform(messages):
        messages.sparkSession.conf.set(LARGE, "true")
        outcomes = each(
            send("billing", body=text(), message_type=F.lit("A.B"), headers={"Shop.A": F.col("id")}),
            add_to("totals", key={"name": F.lit("all")}, add={"orders": F.lit(1)}),
            append_to("moments", {"name": F.lit("x"), "at": F.current_timestamp()}),
            fail("two", when=text().contains("2")),
        )
        return messages.select("origin", outcomes)

    fill(queues, 4, **{"NServiceBus.ConversationId": "one"})
    report = process(queues, spark, route, transform, body_schema=schema, audit_queue="audit")
    assert (report.sent, [one.error for one in report.failed]) == (3, ["two"])
    assert numbers(queues, "billing") == [0, 1, 3]
    shown = queues.show("billing", 10)
    assert all(one.headers["Shop.A"] and one.headers["NServiceBus.ConversationId"] == "one" for one in shown)
    assert (rows(queues, "totals"), len(rows(queues, "moments"))) == ([("all", 3)], 3)
