"""A batch from claim to completion on a real database with a real Spark, in each of the four modes."""

import json
from datetime import timedelta

import pytest
from pyspark.sql import functions as F

from queue_pipeline.errors import ClaimLostError, QueueNotFoundError
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.outcomes import Append, Merge, Results, each, fail, reply, send
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.result_ids import result_ids
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import new_message
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.backends import run_sql
from queue_pipeline_tests.support.databases.claimed_rows import shift_row_versions
from queue_pipeline_tests.support.processing.processed import process as process_claim
from queue_pipeline_tests.support.waiting import eventually

pytestmark = pytest.mark.spark_on_sqlite

MODES = ("unreliable", "receive_only", "sends_atomic_with_receive", "transaction_scope")


@pytest.fixture
def transport(backend):
    transport = backend.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "shipping", "error", "audit", "shop"])
    return transport


@pytest.fixture(autouse=True, params=["local", "executors"])
def route(request):
    """Every test of a batch runs over both ways that it can take."""
    _route[:] = [request.param]
    return request.param


_route: list[str] = []


def forward(messages):
    return messages.select("origin", "body")


def declare(**options):
    way = "local" if options.get("transaction_mode") == "unreliable" else _route[0]
    given = {"name": "orders", "input_queue": "orders", "output_queues": ["billing"], "transform": forward}
    return QueuePipeline(**{**given, "route": way, **options})


def process(transport, spark, pipeline, claim=None):
    claim = claim or transport.claim("orders", "me", 1_000)
    transformer, executors = made(transport, spark, pipeline)
    report = process_claim(BatchProcessor(pipeline, transport, transformer, executors), pipeline, claim)
    assert report.backend == pipeline.route
    assert staged(transport) == 0
    return report


def made(transport, spark, pipeline):
    sessions = AttemptSessions(lambda: spark)
    return SparkTransformer(pipeline, sessions), Executors(pipeline, transport, sessions)


def staged(transport):
    with transport.transaction() as connection:
        outbox = transport.book.own("QueueOutbox").qualified
        return run_sql(connection, f"SELECT count(*) FROM {outbox}")[0][0]


def fill(transport, count, **options):
    transport.send("orders", [new_message(json.dumps({"n": n}), **options) for n in range(count)])


def numbers(transport, queue):
    return sorted(json.loads(shown.body)["n"] for shown in transport.show(queue, 1_000))


def break_it(messages):
    raise ArithmeticError("the transform is broken")


def test_in_every_mode_a_batch_that_succeeds_is_received_once_and_sent_once(transport, spark):
    for mode in MODES:
        fill(transport, 3)
        report = process(transport, spark, declare(transaction_mode=mode))
        assert (report.messages, report.sent, report.failed, report.generation) == (3, 3, [], 1)
        assert numbers(transport, "billing") == [0, 1, 2]
        assert (transport.peek("orders"), transport.claims.list()) == (0, [])
        with transport.receive("billing", 100):
            pass


def test_what_a_failing_transform_leaves_behind_depends_on_the_mode(transport, spark):
    left = {}
    for mode in MODES:
        fill(transport, 2)
        claim = transport.claim("orders", "me", 100)
        with pytest.raises(ArithmeticError):
            process(transport, spark, declare(transaction_mode=mode, transform=break_it), claim)
        left[mode] = sum(status.messages for status in transport.claims.list())
        assert transport.peek("billing") == 0
        for status in transport.claims.list():
            transport.claims.complete(Completion(status.held, read=None))
    assert left == {
        "unreliable": 0,
        "receive_only": 2,
        "sends_atomic_with_receive": 2,
        "transaction_scope": 2,
    }


@pytest.mark.parametrize("mode", MODES)
def test_a_zombie_sends_nothing_where_sends_are_atomic_and_ghost_messages_where_they_are_not(sqlite, spark, mode):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport, 3)
    claim, adopted = transport.claim("orders", "slow run", 100), []

    def while_another_takes_over(messages):
        adopted.append(transport.claims.adopt(claim, "another run"))
        return forward(messages)

    slow = declare(transaction_mode=mode, transform=while_another_takes_over)
    if mode == "unreliable":
        process(transport, spark, slow, claim)
        assert adopted == [None]
        assert numbers(transport, "billing") == [0, 1, 2]
        return
    with pytest.raises(ClaimLostError):
        process(transport, spark, slow, claim)
    ghosts = numbers(transport, "billing")
    # What executors staged is sent with the completion in every mode.
    assert ghosts == ([0, 1, 2] if mode == "receive_only" and slow.route == "local" else [])
    process(transport, spark, declare(transaction_mode=mode), adopted[0])
    assert numbers(transport, "billing") == sorted([*ghosts, 0, 1, 2])
    ids = [shown.headers[wire.MESSAGE_ID] for shown in transport.show("billing", 100)]
    assert len(set(ids)) == 3, "a ghost has the id of the message that is sent again"


def totals(messages):
    counted = messages.groupBy(F.lit("all").alias("name")).agg(
        F.min("origin").alias("origin"), F.count("*").alias("orders")
    )
    return Results(
        forward(messages),
        tables=[
            Merge("totals", counted, key=["name"], add=["orders"]),
            Append("seen", messages.select("origin", F.col("payload.n").alias("n"))),
        ],
    )


def create_tables(backend, transport):
    schema = f'"{backend.schema}".' if backend.schema else ""
    backend.sql(transport, f"CREATE TABLE {schema}totals (name varchar(20) PRIMARY KEY, orders bigint)")
    backend.sql(transport, f"CREATE TABLE {schema}seen (n bigint)")

    def rows():
        both = (f"SELECT name, orders FROM {schema}totals", f"SELECT n FROM {schema}seen ORDER BY n")
        return [[tuple(row) for row in backend.sql(transport, select)] for select in both]

    return rows


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "unreliable"])
def test_rows_of_the_users_own_tables_are_written_with_the_batch_or_not_at_all(backend, transport, spark, mode):
    rows = create_tables(backend, transport)
    pipeline = declare(transform=totals, transaction_mode=mode, body_schema="n int")
    fill(transport, 2)
    report = process(transport, spark, pipeline)
    assert report.table_rows == 3
    assert rows() == [[("all", 2)], [(0,), (1,)]]
    fill(transport, 3)
    nowhere = declare(
        transform=lambda messages: totals(messages),
        transaction_mode=mode,
        body_schema="n int",
        output_queues=["nowhere"],
    )
    claim = transport.claim("orders", "me", 100)
    with pytest.raises(QueueNotFoundError, match="nowhere"):
        process(transport, spark, nowhere, claim)
    assert rows() == [[("all", 2)], [(0,), (1,)]]
    process(transport, spark, pipeline, claim)
    assert rows() == [[("all", 5)], [(0,), (0,), (1,), (1,), (2,)]]


def mixed(messages):
    n = F.col("payload.n")
    return messages.select(
        "origin",
        each(
            send("billing", json=F.struct(n.alias("n")), when=n < 3, headers={"Shop.N": n.cast("string")}),
            send("shipping", json=F.struct(n.alias("n")), when=n == 0, delay=3_600),
            send("shipping", json=F.struct(n.alias("n")), when=n == 1, time_to_live=0.001),
            reply(json=F.struct(n.alias("n")), when=n == 2),
            fail(F.concat(F.lit("too large: "), n.cast("string")), error_type="TooLarge", when=n > 2),
        ),
    )


def test_every_outcome_of_a_batch_ends_where_it_belongs(backend, transport, spark):
    fill(transport, 4, reply_to="shop", message_type="Shop.OrderPlaced")
    transport.send("orders", new_message("no json", message_type="Shop.OrderPlaced"))
    unreadable(backend, transport)
    pipeline = declare(output_queues=["billing", "shipping"], transform=mixed, body_schema="n int", audit_queue="audit")
    report = process(transport, spark, pipeline)
    assert (report.messages, report.sent) == (6, 6)
    assert sorted((one.error_type, one.error, one.message_type) for one in report.failed) == [
        ("MessageBodyUnreadable", report_of(report, "MessageBodyUnreadable"), "Shop.OrderPlaced"),
        ("MessageHeadersUnreadable", report_of(report, "MessageHeadersUnreadable"), None),
        ("TooLarge", "too large: 3", "Shop.OrderPlaced"),
    ]
    assert numbers(transport, "billing") == [0, 1, 2]
    assert sorted(shown.headers["Shop.N"] for shown in transport.show("billing")) == ["0", "1", "2"]
    assert transport.status("orders")[0].delayed == 1
    eventually(lambda: transport.status("shipping")[0].expired == 1)
    (answer,) = transport.show("shop")
    assert (json.loads(answer.body), answer.headers[wire.MESSAGE_INTENT]) == ({"n": 2}, "Reply")
    failed = transport.show("error", 100)
    assert len(failed) == 3
    (large,) = [one.headers for one in failed if one.headers and one.headers.get(wire.EXCEPTION_TYPE) == "TooLarge"]
    assert large[wire.EXCEPTION_MESSAGE] == "too large: 3"
    assert large[wire.FAILED_QUEUE] == transport.resolve("orders").canonical
    assert large[wire.PROCESSING_ENDPOINT] == "orders"
    assert large[wire.ENCLOSED_MESSAGE_TYPES] == "Shop.OrderPlaced"
    (poison,) = [one for one in failed if one.problem is not None]
    assert (poison.raw_headers, poison.body) == ("no headers", b"poison")
    audited = transport.show("audit", 100)
    assert sorted(json.loads(one.body)["n"] for one in audited) == [0, 1, 2]
    assert all(one.headers[wire.PROCESSING_ENDED] >= one.headers[wire.PROCESSING_STARTED] for one in audited)
    assert (transport.peek("orders"), transport.claims.list()) == (0, [])


def coded(messages):
    n = F.col("payload.n")
    return messages.select("origin", each(reply(code=n * 7, when=n < 2), reply(code=F.when(n > 2, n))))


def coded_rows(messages):
    n = F.col("payload.n")
    return Results(
        replies=messages.select(
            "origin",
            F.when(n < 2, n * 7).when(n > 2, n).alias("code"),
            F.when(n == 2, F.struct(n.alias("n"))).alias("body"),
        )
    )


def by_code(transport):
    answers = [shown for shown in transport.show("shop", 100) if shown.headers.get(wire.CONTROL_MESSAGE) == "True"]
    assert all(shown.body == b"" and shown.headers[wire.MESSAGE_INTENT] == "Reply" for shown in answers)
    assert not any({wire.CONTENT_TYPE, wire.ENCLOSED_MESSAGE_TYPES} & set(shown.headers) for shown in answers)
    return {int(shown.headers[wire.RETURN_CODE]): shown.headers for shown in answers}


def test_a_reply_can_be_a_number_for_a_callback(transport, spark):
    saga = {wire.ORIGINATING_SAGA_ID: "saga1", wire.ORIGINATING_SAGA_TYPE: "Shop.Saga, Shop"}
    fill(transport, 4, reply_to="shop", headers=saga)
    asked = {json.loads(shown.body)["n"]: shown.headers for shown in transport.show("orders", 10)}
    process(transport, spark, declare(transform=coded, body_schema="n int", reply_to="billing"))
    answers = by_code(transport)
    assert sorted(answers) == [0, 3, 7]
    for code, n in ((0, 0), (7, 1), (3, 3)):
        assert answers[code][wire.CORRELATION_ID] == asked[n][wire.CORRELATION_ID]
        assert answers[code][wire.RELATED_TO] == asked[n][wire.MESSAGE_ID]
        assert (answers[code][wire.SAGA_ID], answers[code][wire.SAGA_TYPE]) == ("saga1", "Shop.Saga, Shop")
        assert answers[code][wire.REPLY_TO_ADDRESS] == transport.resolve("billing").canonical
    assert transport.peek("shop") == 3


def test_rows_of_replies_are_numbers_or_messages(transport, spark):
    fill(transport, 4, reply_to="shop")
    process(transport, spark, declare(transform=coded_rows, body_schema="n int"))
    assert sorted(by_code(transport)) == [0, 3, 7]
    (answer,) = [shown for shown in transport.show("shop", 100) if wire.CONTROL_MESSAGE not in shown.headers]
    assert (json.loads(answer.body), answer.headers[wire.CONTENT_TYPE]) == ({"n": 2}, "application/json")
    assert wire.SAGA_ID not in answer.headers


def report_of(report, kind):
    return next(one.error for one in report.failed if one.error_type == kind)


def unreadable(backend, transport):
    """A row that no endpoint could read."""
    table = transport.resolve("orders").qualified
    identity = "6f9619ff-8b86-d011-b42d-00cf4fc964ff"
    columns = "id, headers, body" if backend.name == "postgresql" else "Id, Headers, Body"
    row = (identity, b"poison")
    backend.sql(transport, f"INSERT INTO {table} ({columns}) VALUES (?, 'no headers', ?)", row)


def test_an_unreadable_batch_needs_no_spark_and_goes_to_the_error_queue(backend, transport):
    unreadable(backend, transport)

    def no_spark():
        return None

    claim = transport.claim("orders", "me", 10)
    pipeline = declare()
    transformer = SparkTransformer(pipeline, AttemptSessions(no_spark))
    report = process_claim(BatchProcessor(pipeline, transport, transformer), pipeline, claim)
    assert [one.error_type for one in report.failed] == ["MessageHeadersUnreadable"]
    assert (transport.peek("error"), transport.peek("orders"), transport.claims.list()) == (1, 0, [])


def test_a_batch_that_is_processed_again_sends_the_same_ids(transport, spark):
    fill(transport, 3)
    claimed = transport.show("orders", 100)
    claim = transport.claim("orders", "me", 100)
    with pytest.raises(QueueNotFoundError):
        process(transport, spark, declare(output_queues=["nowhere"]), claim)
    pipeline = declare(transaction_mode="receive_only")
    transport.claims.release(claim)
    claim = transport.claim("orders", "me", 100)
    assert claim.generation == 2

    def adopt_meanwhile(messages):
        transport.claims.adopt(claim, "me again")
        return forward(messages)

    with pytest.raises(ClaimLostError):
        process(transport, spark, declare(transaction_mode="receive_only", transform=adopt_meanwhile), claim)
    transport.claims.release_owner("me again")
    expected = list(result_ids([shown.id for shown in claimed], "orders", "billing", [0, 0, 0]))
    report = process(transport, spark, pipeline)
    assert report.generation >= 3
    ids = [shown.headers[wire.MESSAGE_ID] for shown in transport.show("billing", 100)]
    # The local backend wrote ghosts at the first attempt; what executors stage is sent with the completion.
    assert sorted(ids) == sorted(expected * (2 if pipeline.route == "local" else 1))


def test_latencies_are_counted_from_the_time_of_sending(transport, spark):
    fill(transport, 2)
    fill(transport, 1, headers={wire.TIME_SENT: "2020-01-01 00:00:00:000000 Z"})
    fill(transport, 1, headers={wire.TIME_SENT: "some time"})
    report = process(transport, spark, declare())
    known = sorted(seconds for seconds in report.latencies.to_pylist() if seconds is not None)
    assert len(known) == 3
    assert known[-1] > 5 * 365 * 24 * 3_600
    assert 0 <= known[0] < 600
    (_, longest), *_ = report.slowest
    assert longest == pytest.approx(known[-1])


def test_messages_with_negative_row_versions_are_processed_like_any_other(backend, transport, spark):
    fill(transport, 5)
    shift_row_versions(backend, transport, "orders", -3)
    claim = transport.claim("orders", "me", 100)
    assert (claim.messages, claim.first_row_version) == (5, -2)
    assert process(transport, spark, declare(transform=refuse_first), claim).messages == 5
    assert (numbers(transport, "billing"), numbers(transport, "error")) == ([1, 2, 3, 4], [0])
    assert (transport.peek("orders"), transport.claims.list()) == (0, [])


def refuse_first(messages):
    body = F.col("body").cast("string")
    n = F.get_json_object(body, "$.n").cast("int")
    return messages.select("origin", each(send("billing", body=body, when=n > 0), fail("too small", when=n == 0)))


def test_an_expired_message_is_dropped_and_counted(transport, spark):
    fill(transport, 1, time_to_be_received=timedelta(milliseconds=1))
    eventually(lambda: transport.status("orders")[0].expired == 1)
    fill(transport, 2)
    report = process(transport, spark, declare())
    assert (report.messages, report.expired, report.sent) == (2, 1, 2)
