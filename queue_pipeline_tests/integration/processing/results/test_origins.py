"""An origin is what the batch gave to the transform, or it is refused: changed, put together by hand or kept."""

import uuid

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.claimed_batch import SCHEMA
from queue_pipeline.processing.batch.messages_frame import messages_frame
from queue_pipeline.processing.declaration.contract import returned_by
from queue_pipeline.processing.declaration.outcomes import Results, add_to, each, fail, reply, send
from queue_pipeline.processing.errors import TransformError
from queue_pipeline.processing.source import source
from queue_pipeline.processing.spark.errors import own_errors
from queue_pipeline.processing.spark.internals.calls import physical_plan, spark_schema
from queue_pipeline_tests.support.dagster.pipelines import declare
from queue_pipeline_tests.support.processing.both_routes import STRANGER, fill, numbers, process


@pytest.fixture
def queues(postgresql):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    totals = transport.book.own("totals").qualified
    postgresql.sql(transport, f"CREATE TABLE {totals} (name text PRIMARY KEY, orders bigint)")
    return transport


def changed(**fields):
    origin = F.col("origin")
    for name, value in fields.items():
        origin = origin.withField(name, value)
    return origin.alias("origin")


def text():
    return F.col("body").cast("string")


def swapped(messages):
    """The row versions of messages with the ids of their neighbours."""
    first = messages.agg(F.min("row_version"), F.max("row_version")).first()
    other = messages.select((F.lit(sum(first)) - F.col("row_version")).alias("row_version"), F.col("id").alias("other"))
    return messages.join(other, "row_version").select(changed(id=F.col("other")), "body")


def other_reply_address(messages):
    return messages.select(changed(reply_to=F.lit("billing")), each(reply(body=text())))


def failures_of_other_ids(messages):
    return Results(failures=messages.select(changed(id=F.lit("another")), F.lit("refused").alias("error")))


def outcomes_of_other_ids(messages):
    outcomes = each(fail("refused"), add_to("totals", key={"name": "all"}, add={"orders": 1}))
    return messages.select(changed(id=F.lit("another")), outcomes)


def made_by_hand(messages):
    """All fields that one sees, typed again: row versions of the batch, and the rest invented."""
    kind = messages.schema["origin"].dataType
    values = [(row.row_version, *("made" if f.dataType.simpleString() == "string" else 1 for f in kind.fields[1:]))
              for row in messages.select("row_version").collect()]  # fmt: skip
    frame = messages.sparkSession.createDataFrame(values, kind)
    return frame.select(F.struct(*kind.names).alias("origin"), F.lit("made").alias("body"))


def negative(messages):
    return messages.select(changed(row_version=-F.col("row_version")), "body")


def one_of_many(messages):
    is_last = F.col("row_version") == messages.agg(F.max("row_version")).first()[0]
    origin = F.when(is_last, changed(id=F.lit("another"))).otherwise(F.col("origin"))
    return messages.select(origin.alias("origin"), "body")


@pytest.mark.parametrize(
    "transform",
    [
        swapped,
        other_reply_address,
        failures_of_other_ids,
        outcomes_of_other_ids,
        made_by_hand,
        negative,
        one_of_many,
    ],
)
def test_an_origin_that_the_batch_did_not_give_is_refused_and_all_messages_kept(queues, spark, route, transform):
    fill(queues, 4)
    claim = queues.claim("orders", "me", 100)
    with pytest.raises(TransformError, match=STRANGER):
        process(queues, spark, route, transform, claim)
    assert [queues.peek(queue) for queue in ("billing", "error")] == [0, 0]
    assert [(one.claim_id, one.messages) for one in queues.claims.list()] == [(claim.claim_id, 4)]


def test_origins_of_an_earlier_batch_are_refused(queues, spark, route):
    kept = []

    def keeps(messages):
        kept.extend(messages.select("origin").collect())
        return messages.select("origin", "body")

    def uses_kept(messages):
        earlier = messages.sparkSession.createDataFrame(kept, messages.select("origin").schema)
        return earlier.select("origin", F.lit("doubled").alias("body"))

    fill(queues, 4)
    process(queues, spark, route, keeps, queues.claim("orders", "me", 2))
    with pytest.raises(TransformError, match=STRANGER):
        process(queues, spark, route, uses_kept, queues.claim("orders", "me", 2))
    assert numbers(queues, "billing") == [0, 1]
    assert [one.messages for one in queues.claims.list()] == [2]


def test_a_view_of_an_earlier_batch_is_refused(queues, spark, route):
    """A global view is one that all sessions see."""
    view = f"kept_{uuid.uuid4().hex}"

    def keeps(messages):
        messages.createOrReplaceGlobalTempView(view)
        return messages.select("origin", "body")

    def reads_kept(messages):
        return messages.sparkSession.table(f"global_temp.{view}").select("origin", "body")

    fill(queues, 4)
    process(queues, spark, route, keeps, queues.claim("orders", "me", 2))
    with pytest.raises(TransformError, match=STRANGER):
        process(queues, spark, route, reads_kept, queues.claim("orders", "me", 2))
    spark.catalog.dropGlobalTempView(view)
    assert numbers(queues, "billing") == [0, 1]
    assert [one.messages for one in queues.claims.list()] == [2]


KINDS = {
    "send": lambda: send("billing", body=text()),
    "reply": lambda: reply(body=text()),
    "failure": lambda: fail("refused"),
    "table row": lambda: add_to("totals", key={"name": "all"}, add={"orders": 1}),
}
TEXTS = ("id", "message_id", "correlation_id", "conversation_id", "reply_to", "saga_id", "saga_type")
changes = st.one_of(
    st.tuples(st.just("row_version"), st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.sampled_from(TEXTS), st.one_of(st.none(), st.text("ab\u00e9\x1f", max_size=3))),
    st.tuples(st.just("seal"), st.one_of(st.none(), st.integers(-1, 2**32))),
)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(change=changes, kind=st.sampled_from(sorted(KINDS)), which=st.integers(0, 3))
def test_any_change_of_any_origin_is_refused_for_any_kind_of_result(queues, spark, route, change, kind, which):
    name, value = change

    def transform(messages):
        """One message of four is changed."""
        kind_of_field = messages.schema["origin"].dataType[name].dataType
        row_version = messages.orderBy("row_version").collect()[which].row_version
        origin = F.when(F.col("row_version") == row_version, changed(**{name: F.lit(value).cast(kind_of_field)}))
        return messages.select(origin.otherwise(F.col("origin")).alias("origin"), each(KINDS[kind]()))

    if not queues.claims.list():
        fill(queues, 4, **{"NServiceBus.ReplyToAddress": "billing"})
    claim = queues.claim("orders", "me", 100) or queues.claims.list()[0].held
    (messages,) = queues.claim_reader.read(claim)
    own = {"row_version": messages["row_version"][which].as_py(), "reply_to": "billing"}
    assume(value != own.get(name) and (value is not None or name not in ("saga_id", "saga_type", "correlation_id")))
    with pytest.raises(TransformError, match=STRANGER):
        process(queues, spark, route, transform, claim)
    assert [queues.peek(queue) for queue in ("billing", "error")] == [0, 0]
    assert [one.messages for one in queues.claims.list()] == [4]


def test_a_program_that_writes_a_changed_origin_completes_nothing(queues, spark):
    source.register_sql_queue(spark, queues)
    fill(queues, 2)
    claim = queues.claim("orders", "me", 100)
    option = source.claim_option(claim)
    messages = source.messages_of(spark.read.format(source.FORMAT).option("claim", option).load())
    for origin, error in ((changed(id=F.lit("another")), STRANGER), ("origin", None)):
        results = messages.select(origin, each(send("billing", body=text())))
        write = results.write.format(source.FORMAT).option("claim", option).mode("append").save
        if error is None:
            write()
        else:
            with pytest.raises(TransformError, match=error), own_errors():
                write()
            assert (queues.peek("billing"), len(queues.claims.list())) == (0, 1)
    assert (numbers(queues, "billing"), queues.claims.list()) == ([0, 1], [])


def grouped(messages):
    rows = messages.groupBy(F.col("row_version") % 2).agg(F.min("origin").alias("origin"), F.min("body").alias("body"))
    return rows.select("origin", "body")


def collected(messages):
    rows = messages.select("origin", "body").collect()
    return messages.sparkSession.createDataFrame(rows, messages.select("origin", "body").schema)


def by_python(messages):
    kept = messages.select("origin", "body")
    return kept.mapInPandas(lambda frames: iter(frames), kept.schema)


def taken_apart(messages):
    names = messages.schema["origin"].dataType.names
    flat = messages.select("origin.*", "body")
    return flat.select(F.struct(*names).alias("origin"), "body")


def by_id(messages):
    return messages.select("id", "body")


@pytest.mark.parametrize(
    ("transform", "sent"), [(grouped, 2), (collected, 4), (by_python, 4), (taken_apart, 4), (by_id, 4)]
)
def test_an_origin_that_was_only_moved_is_accepted(queues, spark, route, transform, sent):
    fill(queues, 4)
    report = process(queues, spark, route, transform)
    assert (report.messages, report.sent, report.failed) == (4, sent, [])
    assert len(numbers(queues, "billing")) == sent


def test_checking_an_unchanged_origin_reads_no_further_column(spark, tmp_path):
    """Else every batch would read all ids of its messages."""
    pq.write_table(SCHEMA.empty_table(), tmp_path / "batch.parquet")
    frame = spark.read.schema(spark_schema(SCHEMA)).parquet(str(tmp_path))
    returned = returned_by(
        declare(transform=lambda messages: messages.select("origin", "body")), messages_frame(frame, 1)
    )
    assert returned.outcomes is not None
    plan = physical_plan(returned.outcomes.select("origin.row_version", *returned.names))
    assert "ReadSchema: struct<row_version:bigint,body:binary>" in plan
