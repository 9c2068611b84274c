"""Messages without a result are counted on both backends; with `require_outcome` they are failures."""

import pytest
from pyspark.sql import functions as F

from queue_pipeline.orchestration.metadata import of_run, sentence
from queue_pipeline.processing.declaration.outcomes import Results, add_to, append_to, each, fail, publish, reply, send
from queue_pipeline.processing.run.run_metrics import RunFigures
from queue_pipeline.transport import new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.hostile_rows import HostileRow, insert
from queue_pipeline_tests.support.processing.both_routes import fill, numbers, process


@pytest.fixture
def queues(postgresql):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error", "shop"])
    for table, columns in (("totals", "name text PRIMARY KEY, orders bigint"), ("seen", "body text")):
        postgresql.sql(transport, f"CREATE TABLE {transport.book.own(table).qualified} ({columns})")
    return transport


def number():
    return F.get_json_object(F.col("body").cast("string"), "$.n").cast("int")


def text():
    return F.col("body").cast("string")


def five(messages):
    return messages.select("origin", "body").limit(5)


def conditions_that_are_null(messages):
    never = F.lit(None).cast("boolean")
    return messages.select(
        "origin", each(send("billing", body=text(), when=F.when(number() < 5, True).otherwise(never)))
    )


def groups(messages):
    rows = messages.groupBy(number() % 5).agg(F.min("origin").alias("origin"), F.min("body").alias("body"))
    return rows.select("origin", "body")


def nothing(messages):
    return messages.select("origin", "body").where("false")


def no_results(messages):
    return Results()


@pytest.mark.parametrize(
    ("transform", "sent"),
    [
        (five, 5),
        (conditions_that_are_null, 5),
        (groups, 5),
        (nothing, 0),
        (no_results, 0),
    ],
)
def test_messages_without_a_result_are_counted(queues, spark, route, transform, sent):
    fill(queues, 20)
    report = process(queues, spark, route, transform)
    assert (report.messages, report.sent, report.failed) == (20, sent, [])
    assert report.without_outcome == 20 - sent
    assert f"20 messages in, {sent} out, {20 - sent} had no result" in sentence(report)
    figures = RunFigures()
    figures.add_batch(report)
    assert of_run(figures, "queue-pipeline errors retry")["messages_without_outcome"] == 20 - sent
    assert (queues.peek("orders"), queues.peek("billing"), queues.claims.list()) == (0, sent, [])


@pytest.mark.parametrize("transform", [five, conditions_that_are_null, nothing])
def test_a_pipeline_can_require_an_outcome_of_every_message(queues, spark, route, transform):
    fill(queues, 8)
    report = process(queues, spark, route, transform, require_outcome=True)
    assert (report.messages, report.without_outcome) == (8, 0)
    assert {(one.error_type, one.error) for one in report.failed} == {
        ("NoOutcome", "the transform returned no send, reply, event, failure or table row for this message")
    }
    assert len(report.failed) == 8 - report.sent
    assert sorted(numbers(queues, "billing") + numbers(queues, "error")) == list(range(8))


def test_every_kind_of_outcome_is_one(queues, spark, route):
    def transform(messages):
        def when(n):
            return number() == n

        return messages.select(
            "origin",
            each(
                send("billing", body=text(), when=when(0)),
                reply(code=1, when=when(1)),
                publish("Shop.A", body=text(), when=when(2)),
                fail("refused", when=when(3)),
                add_to("totals", key={"name": "all"}, add={"orders": 1}, when=when(4)),
                append_to("seen", {"body": text()}, when=when(5)),
                send("billing", json=F.when(number() != 6, F.struct(number().alias("n"))), when=when(6)),
            ),
        )

    fill(queues, 8, **{wire.REPLY_TO_ADDRESS: "shop"})
    report = process(queues, spark, route, transform, publishes=["Shop.A"], require_outcome=True)
    assert sorted(one.error for one in report.failed)[0] == "refused"
    assert [one.error_type for one in report.failed].count("NoOutcome") == 1
    assert numbers(queues, "error") == [3, 6, 7]


def test_a_second_row_without_an_outcome_takes_nothing_away(queues, spark, route):
    def transform(messages):
        outcomes = messages.select("origin", each(send("billing", body=text())))
        return outcomes.union(messages.select("origin", each(send("billing", body=text(), when=F.lit(False)))))

    fill(queues, 4)
    report = process(queues, spark, route, transform, require_outcome=True)
    assert (report.sent, report.failed, report.without_outcome) == (4, [], 0)


@pytest.mark.parametrize("schema", [None, "n INT NOT NULL"])
def test_messages_that_no_transform_answers_for_are_not_counted(postgresql, queues, spark, route, schema):
    """Control messages, bodies that do not fit, and headers that cannot be read."""
    queues.send("orders", new_message("", headers={wire.CONTROL_MESSAGE: "True"}))
    if schema is not None:
        queues.send("orders", new_message('{"n": "one"}'))
    insert(queues, postgresql, "orders", [HostileRow("00000000-0000-0000-0000-000000000001", b"no JSON", b"{}")])
    fill(queues, 2)
    report = process(
        queues, spark, route, lambda messages: messages.select("origin", "body").where("false"), body_schema=schema
    )
    assert (report.messages, len(report.failed), report.without_outcome) == (
        4 if schema is None else 5,
        1 + bool(schema),
        2,
    )
