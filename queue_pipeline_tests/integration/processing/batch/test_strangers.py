"""Results that name a message outside of their claim are refused on both routes, and no message is lost by it."""

import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.declaration.outcomes import Results, add_to, append_to, each, fail, send
from queue_pipeline.processing.errors import TransformError
from queue_pipeline_tests.support.databases.backends import run_sql
from queue_pipeline_tests.support.processing.both_routes import STRANGER, fill, numbers
from queue_pipeline_tests.support.processing.both_routes import process as process_claim


@pytest.fixture
def queues(postgresql):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    postgresql.sql(transport, f"CREATE TABLE {qualified(transport, 'totals')} (name text PRIMARY KEY, orders bigint)")
    postgresql.sql(transport, f"CREATE TABLE {qualified(transport, 'seen')} (body text)")
    return transport


def qualified(transport, table):
    return transport.book.own(table).qualified


def rows(transport, table):
    with transport.transaction() as connection:
        return [tuple(row) for row in run_sql(connection, f"SELECT * FROM {qualified(transport, table)}")]


def forward(messages):
    return messages.select("origin", "body")


def process(transport, spark, route, transform, claim):
    return process_claim(transport, spark, route, transform, claim, transaction_mode="transaction_scope")


def moved(distance):
    """An origin whose row version is that of another row."""
    return F.col("origin").withField("row_version", F.col("origin.row_version") + distance).alias("origin")


def text():
    return F.col("body").cast("string")


def sends(messages):
    return messages.select(moved(1_000_000), "body")


def sends_before_the_claim(messages):
    return messages.select(moved(-1_000_000), "body")


def one_of_many_sends(messages):
    is_last = F.col("row_version") == messages.agg(F.max("row_version")).scalar()
    return messages.select(F.when(is_last, moved(1)).otherwise(F.col("origin")).alias("origin"), "body")


def failures(messages):
    return Results(failures=messages.select(moved(1_000_000), F.lit("refused").alias("error")))


def failing_outcomes(messages):
    return messages.select(moved(1_000_000), each(fail("refused", when=F.lit(True))))


def added_rows(messages):
    return messages.select(moved(1_000_000), each(add_to("totals", key={"name": "all"}, add={"orders": 1})))


def appended_rows(messages):
    return messages.select(moved(1_000_000), each(append_to("seen", {"body": text()})))


def sends_and_rows(messages):
    outcomes = each(send("billing", body=text()), append_to("seen", {"body": text()}))
    return messages.select("origin", outcomes).union(messages.limit(1).select(moved(1_000_000), outcomes))


def lost_origins(messages):
    return messages.select(F.when(F.col("row_version") < 0, F.col("origin")).alias("origin"), "body")


def lost_origins_of_rows(messages):
    lost = F.when(F.col("row_version") < 0, F.col("origin")).alias("origin")
    return messages.select(lost, each(add_to("totals", key={"name": "all"}, add={"orders": 1})))


def lost_origins_of_failures(messages):
    lost = F.when(F.col("row_version") < 0, F.col("origin")).alias("origin")
    return Results(failures=messages.select(lost, F.lit("refused").alias("error")))


def no_outcome_at_all(messages):
    return messages.select(moved(1_000_000), each(send("billing", body=text(), when=F.lit(False))))


def unknown_ids(messages):
    return messages.select(F.lit("unknown").alias("id"), "body")


@pytest.mark.parametrize(
    "transform",
    [
        sends,
        sends_before_the_claim,
        one_of_many_sends,
        failures,
        failing_outcomes,
        added_rows,
        appended_rows,
        sends_and_rows,
        lost_origins,
        lost_origins_of_rows,
        lost_origins_of_failures,
        no_outcome_at_all,
        unknown_ids,
    ],
)
def test_results_of_a_message_outside_of_the_claim_are_refused_and_all_messages_kept(queues, spark, route, transform):
    fill(queues, 5)
    claim = queues.claim("orders", "me", 100)
    with pytest.raises(TransformError, match=STRANGER):
        process(queues, spark, route, transform, claim)
    assert [queues.peek(queue) for queue in ("billing", "error")] == [0, 0]
    assert (rows(queues, "totals"), rows(queues, "seen")) == ([], [])
    assert [(one.claim_id, one.messages) for one in queues.claims.list()] == [(claim.claim_id, 5)]
    report = process(queues, spark, route, forward, claim)
    assert (report.messages, report.sent, report.failed) == (5, 5, [])
    assert numbers(queues, "billing") == list(range(5))
    assert (queues.peek("orders"), queues.claims.list()) == (0, [])


def test_a_result_of_a_message_of_another_claim_is_refused(queues, spark, route):
    fill(queues, 6)
    first, second = queues.claim("orders", "me", 3), queues.claim("orders", "another", 3)
    distance = second.first_row_version - first.first_row_version
    with pytest.raises(TransformError, match=STRANGER):
        process(queues, spark, route, lambda messages: messages.select(moved(distance), "body"), first)
    assert queues.peek("billing") == 0
    for claim in (first, second):
        process(queues, spark, route, forward, claim)
    assert numbers(queues, "billing") == list(range(6))


def test_a_result_of_a_message_that_was_removed_from_the_middle_of_a_claim_is_refused(queues, spark, route):
    fill(queues, 5)
    versions = [shown.row_version for shown in queues.show("orders", 10)]
    claim = queues.claim("orders", "me", 100)
    rest, taken_out = queues.claims.separate(claim, [(versions[2], versions[2])])
    assert (rest.messages, taken_out.messages) == (4, 1)

    def doubled(messages):
        """The second message stands for the third, which is between the others."""
        other = F.when(F.col("row_version") == versions[1], moved(versions[2] - versions[1]))
        return messages.select(other.otherwise(F.col("origin")).alias("origin"), "body")

    with pytest.raises(TransformError, match=STRANGER):
        process(queues, spark, route, doubled, rest)
    assert queues.peek("billing") == 0
    for one in (rest, taken_out):
        process(queues, spark, route, forward, one)
    assert numbers(queues, "billing") == list(range(5))


def test_a_failure_whose_origin_has_another_id_loses_no_message(queues, spark, route):
    """The row version says which message is meant; the rest of the origin is what the message itself says."""

    def renamed(messages):
        origin = F.col("origin").withField("id", F.lit("another")).alias("origin")
        return Results(failures=messages.select(origin, F.lit("refused").alias("error")))

    fill(queues, 3)
    claim = queues.claim("orders", "me", 100)
    try:
        process(queues, spark, route, renamed, claim)
    except TransformError as error:
        assert STRANGER in str(error)
        assert [one.messages for one in queues.claims.list()] == [3]
    else:
        assert numbers(queues, "error") == [0, 1, 2]
