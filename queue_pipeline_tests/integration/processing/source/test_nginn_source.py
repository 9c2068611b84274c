"""`format("sql_queue")` by hand over an NGinn queue: results complete a claim, and what failed stays in the queue."""

import json

import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.declaration.outcomes import each, fail, send
from queue_pipeline.processing.source import source
from queue_pipeline.transport import new_message
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings

pytestmark = pytest.mark.spark_on_sqlite

ORDERS = "sql://shop/Orders"
SETTINGS = NGinnSettings(aliases=("shop",), endpoint="sql://shop/Pipelines")


@pytest.fixture
def transport(backend, spark):
    """There is no error queue: NGinn queues need none."""
    transport = backend.transport(nginn=SETTINGS)
    transport.install(ORDERS, plain_queues=["billing"])
    source.register_sql_queue(spark, transport)
    return transport


def fill(transport, count):
    transport.send(ORDERS, [new_message(json.dumps({"n": n}), message_type="Shop.Order, Shop") for n in range(count)])


def without_three(messages):
    number = F.get_json_object(F.col("body").cast("string"), "$.n").cast("int")
    return messages.select(
        "origin",
        each(
            send("billing", body=number.cast("string"), when=number != 3),
            fail("three is refused", error_type="Three", when=number == 3),
        ),
    )


def make_unreadable(backend, transport):
    """The headers of the first message become some that no reader can take apart; returns its id."""
    queue = transport.resolve(ORDERS).qualified
    first = backend.sql(transport, f"SELECT min(id) FROM {queue}")[0][0]
    backend.sql(transport, f"UPDATE {queue} SET msg_headers = 'a=b=c' WHERE id = ?", (first,))
    return first


def check(backend, transport):
    assert sorted(int(shown.body) for shown in transport.show("billing", 100)) == [1, 2, 4, 5]
    queue = transport.resolve(ORDERS).qualified
    found = backend.sql(transport, f"SELECT subqueue, error_info, retry_count FROM {queue} ORDER BY id")
    assert [row[0] for row in found] == ["F", "X", "X", "F", "X", "X"]
    assert found[0][1].startswith("unreadable")
    assert (found[3][1].splitlines()[0], found[3][2]) == ("Three: three is refused", 1)
    assert transport.claims.list() == []
    outbox = transport.book.own("QueueOutbox").qualified
    assert backend.sql(transport, f"SELECT count(*) FROM {outbox}")[0][0] == 0


def test_what_failed_stays_in_the_queue_when_a_job_completes_its_claim(backend, transport, spark):
    """Also what became unreadable after it was claimed."""
    fill(transport, 6)
    claim = transport.claim(ORDERS, "me", 100)
    make_unreadable(backend, transport)
    option = source.claim_option(claim)
    messages = source.messages_of(spark.read.format(source.FORMAT).option("claim", option).load())
    without_three(messages).write.format(source.FORMAT).option("claim", option).mode("append").save()
    check(backend, transport)


def test_a_message_whose_body_does_not_fit_the_schema_stays_in_the_queue_with_the_problem(backend, transport, spark):
    sent = [new_message(body, message_type="Shop.Order, Shop") for body in ('{"n":1}', '{"n":"two"}', '{"n":3}')]
    transport.send(ORDERS, sent)
    claim = transport.claim(ORDERS, "me", 100)
    option = source.claim_option(claim)
    frame = spark.read.format(source.FORMAT).option("claim", option).load()
    messages = source.messages_of(frame, "n INT NOT NULL")
    problems = [row.problem for row in messages.orderBy("row_version").collect()]
    assert [problem is None for problem in problems] == [True, False, True]
    outcomes = each(
        send("billing", body=F.col("payload.n").cast("string"), when=F.col("payload").isNotNull()),
        fail(F.col("problem"), error_type="BadBody"),
    )
    written = messages.select("origin", outcomes).write.format(source.FORMAT).option("claim", option)
    written.mode("append").save()
    assert sorted(int(shown.body) for shown in transport.show("billing", 100)) == [1, 3]
    queue = transport.resolve(ORDERS).qualified
    found = backend.sql(transport, f"SELECT subqueue, error_info FROM {queue} ORDER BY id")
    assert [row[0] for row in found] == ["X", "F", "X"]
    assert found[1][1].startswith(f"BadBody: {problems[1]}")
    assert transport.claims.list() == []


def test_what_failed_stays_in_the_queue_when_a_micro_batch_ends(backend, transport, spark, tmp_path):
    fill(transport, 6)
    make_unreadable(backend, transport)
    options = {"queue": ORDERS, "stream": "orders", "batch_messages": 4}
    messages = source.messages_of(spark.readStream.format(source.FORMAT).options(**options).load())
    writer = without_three(messages).writeStream.format(source.FORMAT).option("stream", "orders")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    check(backend, transport)
