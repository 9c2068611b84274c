"""Pipelines over NGinn queues on a real database with a real Spark: to and from them, and what becomes of failures."""

import json
import signal
import subprocess
import sys
from datetime import timedelta
from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.outcomes import Append, Merge, Results, each, fail, reply, send
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.results.result_ids import result_ids
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import new_message
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.nginn.nginn_peer import Peer
from queue_pipeline_tests.support.processing.recovering import THIS_CODE
from queue_pipeline_tests.support.waiting import eventually

pytestmark = pytest.mark.spark_on_sqlite

ORDERS, INVOICES, SHOP = (f"sql://shop/{name}" for name in ("Orders", "Invoices", "Shop"))
ORDER, INVOICE = "Shop.Order, Shop", "Shop.Invoice, Shop"
SETTINGS = NGinnSettings(
    aliases=("shop",), endpoint="sql://shop/Pipelines", types={ORDER: "Shop.OrderPlaced"}, retry_seconds=(30.0, 180.0)
)
AT_ONCE = Recoverability(immediate_retries=0)
_COLUMNS = (
    "id", "from_endpoint", "to_endpoint", "subqueue", "retry_count", "error_info", "correlation_id", "label",
    "msg_text", "msg_headers", "unique_id",
)  # fmt: skip
_WAIT = {
    "sqlite": "(julianday(retry_time) - julianday('now')) * 86400",
    "postgresql": "extract(EPOCH FROM retry_time - (now() AT TIME ZONE 'UTC'))",
    "sqlserver": "DATEDIFF(second, GETDATE(), retry_time)",
}


@pytest.fixture
def transport(backend):
    """There is no error queue: NGinn queues need none."""
    transport = backend.transport(endpoint="incoming", nginn=SETTINGS)
    transport.install(ORDERS, INVOICES, SHOP, "incoming", plain_queues=["billing", "audit"])
    return transport


@pytest.fixture(autouse=True, params=["local", "executors"])
def route(request):
    """Every test runs over both ways that a batch can take."""
    _route[:] = [request.param]
    return request.param


_route: list[str] = []


def forward(messages):
    return messages.select("origin", "body")


def declare(**options):
    given = {"name": "orders", "input_queue": ORDERS, "output_queues": ["billing"], "transform": forward}
    given |= {"linger_seconds": 0, "peek_delay": 0.1, "max_concurrency": 1, "body_schema": "n int"}
    return QueuePipeline(**{**given, "route": _route[0], "recoverability": AT_ONCE, **options})


def run(transport, spark, pipeline=None, owner="run 1"):
    """One run of a pipeline, as Dagster starts it; returns the reports of its batches."""
    pipeline = pipeline or declare()
    sessions = AttemptSessions(lambda: spark)
    executors = Executors(pipeline, transport, sessions)
    recovery = Recovery(pipeline, transport, SparkTransformer(pipeline, sessions), executors, proof=THIS_CODE)
    attempts = []
    ended = PipelineRun(
        pipeline,
        transport,
        owner,
        recovery,
        slots=1,
        on_attempt=attempts.append,
    ).run()
    assert ended.failure is None
    reports = [report for attempt in attempts for report in attempt.reports]
    assert all(report.backend == _route[0] for report in reports if report.sent)
    return reports


def order(n, **options):
    return new_message(json.dumps({"n": n}), message_type=ORDER, reply_to=SHOP, **options)


def fill(transport, count, **options):
    transport.send(ORDERS, [order(n, **options) for n in range(count)])


def rows(backend, transport, queue=ORDERS):
    """A queue as it is, by the numbers of its messages; `wait` is how many seconds a message waits."""
    columns = (*_COLUMNS, f"{_WAIT[backend.name]} AS wait_seconds")
    found = backend.sql(transport, f"SELECT {', '.join(columns)} FROM {transport.resolve(queue).qualified} ORDER BY id")
    return [SimpleNamespace(**dict(zip((*_COLUMNS, "wait"), row, strict=True))) for row in found]


def by_subqueue(backend, transport, queue=ORDERS):
    found = rows(backend, transport, queue)
    numbers = {one.subqueue: [] for one in found}
    for one in found:
        numbers[one.subqueue].append(json.loads(one.msg_text)["n"])
    return {subqueue: sorted(each) for subqueue, each in numbers.items()}


def numbers(transport, queue="billing"):
    return sorted(json.loads(shown.body)["n"] for shown in transport.show(queue, 1_000))


def make_due(backend, transport):
    """As if the time of all that waits had passed."""
    past = {
        "sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 seconds')",
        "postgresql": "(now() AT TIME ZONE 'UTC') - interval '1 second'",
        "sqlserver": "DATEADD(second, -1, GETDATE())",
    }[backend.name]
    queue = transport.resolve(ORDERS).qualified
    backend.sql(transport, f"UPDATE {queue} SET retry_time = {past} WHERE subqueue = 'R'")


def peer_of(backend, transport):
    peer = Peer(transport.database, backend.schema, "Orders")
    peer.create_tables()
    return peer


# --- from one system to the other -------------------------------------------------------------------------


def test_from_an_nginn_queue_to_one_of_nservicebus_in_one_transaction(backend, transport, spark):
    origin = {wire.CORRELATION_ID: "the order", wire.CONVERSATION_ID: "the talk"}
    fill(transport, 3, headers={"Shop.Colour": "blue", **origin})
    before = rows(backend, transport)
    (report,) = run(transport, spark, declare(audit_queue="audit"))
    assert (report.messages, report.sent, report.failed) == (3, 3, [])
    assert by_subqueue(backend, transport) == {"X": [0, 1, 2]}
    shown = sorted(transport.show("billing", 10), key=lambda one: json.loads(one.body)["n"])
    assert [json.loads(one.body) for one in shown] == [{"$type": ORDER, "n": n} for n in range(3)]
    for one, source in zip(shown, before, strict=True):
        assert (one.headers[wire.RELATED_TO], one.headers[wire.CORRELATION_ID]) == (source.unique_id, "the order")
        assert one.headers[wire.CONVERSATION_ID] == "the talk"
        assert one.headers[wire.ORIGINATING_ENDPOINT] == ORDERS
        assert wire.REPLY_TO_ADDRESS not in one.headers, "no endpoint of NServiceBus could answer to an NGinn queue"
    audited = transport.show("audit", 10)
    assert {one.headers[wire.ENCLOSED_MESSAGE_TYPES] for one in audited} == {"Shop.OrderPlaced"}
    assert {one.headers["Shop.Colour"] for one in audited} == {"blue"}
    assert transport.claims.list() == []


def test_from_a_queue_of_nservicebus_to_one_of_nginn(backend, transport, spark):
    origin = {wire.CORRELATION_ID: "the order", wire.CONVERSATION_ID: "the talk"}
    transport.send("incoming", [new_message(json.dumps({"n": n}), headers=origin) for n in range(2)])
    sources = {shown.headers[wire.MESSAGE_ID]: json.loads(shown.body)["n"] for shown in transport.show("incoming", 10)}
    pipeline = declare(input_queue="incoming", output_queues=[{"queue": INVOICES, "message_type": INVOICE}])
    (report,) = run(transport, spark, pipeline)
    assert (report.sent, transport.peek("incoming"), transport.peek(INVOICES)) == (2, 0, 2)
    for row in rows(backend, transport, INVOICES):
        body = json.loads(row.msg_text)
        assert row.msg_text == f'{{"$type":"{INVOICE}","n":{body["n"]}}}'
        headers = dict(pair.split("=") for pair in row.msg_headers.split("|"))
        assert sources[headers.pop(wire.RELATED_TO)] == body["n"]
        assert headers == {wire.CONVERSATION_ID: "the talk"}
        assert (row.from_endpoint, row.to_endpoint) == (SETTINGS.endpoint, INVOICES)
        assert (row.subqueue, row.retry_count, row.error_info) == ("I", 0, None)
        assert (row.correlation_id, row.label) == ("the order", "Shop.Invoice")


def test_from_one_nginn_queue_to_another(backend, transport, spark):
    fill(transport, 2, headers={wire.CORRELATION_ID: "the order"})
    claimed = [shown.id for shown in transport.show(ORDERS, 10)]
    pipeline = declare(output_queues=[{"queue": INVOICES, "message_type": INVOICE}])
    run(transport, spark, pipeline)
    found = rows(backend, transport, INVOICES)
    assert {(row.from_endpoint, row.to_endpoint, row.correlation_id) for row in found} == {
        (ORDERS, INVOICES, "the order")
    }
    expected = list(result_ids(claimed, "orders", INVOICES, [0, 0]))
    assert sorted(row.unique_id for row in found) == sorted(one.replace("-", "") for one in expected)
    # A body that has a type keeps it, whatever the queue declares.
    assert {json.loads(row.msg_text)["$type"] for row in found} == {ORDER}
    assert by_subqueue(backend, transport) == {"X": [0, 1]}


def outcomes(messages):
    body = F.struct(F.col("payload.n").alias("n"))
    return messages.select(
        "origin",
        each(
            reply(json=body, message_type=INVOICE, headers={"Shop.Colour": F.lit("blue")}),
            send(INVOICES, json=body, message_type=INVOICE, delay=3_600),
            send(INVOICES, json=body, message_type=INVOICE, time_to_live=600),
        ),
    )


def test_answers_delayed_messages_and_those_that_expire(backend, transport, spark):
    """An answer goes to the sender's endpoint, or where it asked for one; what is delayed waits as scheduled."""
    asking = {wire.NGINN_REPLY_TO: INVOICES}
    transport.send(ORDERS, [order(0, headers={wire.CORRELATION_ID: "c"}), order(1, headers=asking)])
    pipeline = declare(output_queues=[INVOICES], transform=outcomes)
    (report,) = run(transport, spark, pipeline)
    assert report.sent == 6
    (answer,) = rows(backend, transport, SHOP)
    assert (answer.from_endpoint, answer.to_endpoint, answer.correlation_id) == (ORDERS, SHOP, "c")
    assert json.loads(answer.msg_text) == {"$type": INVOICE, "n": 0}
    assert "Shop.Colour=blue" in answer.msg_headers
    found = rows(backend, transport, INVOICES)
    delayed = [row for row in found if row.subqueue == "R"]
    assert sorted(json.loads(row.msg_text)["n"] for row in delayed) == [0, 1]
    assert all(3_500 < row.wait <= 3_600 and wire.DELIVER_AT not in row.msg_headers for row in delayed)
    (other,) = [row for row in found if "Shop.Colour" in row.msg_headers]
    assert (json.loads(other.msg_text)["n"], other.subqueue) == (1, "I")
    expiring = [row for row in found if wire.NGINN_TIME_TO_LIVE in row.msg_headers]
    assert sorted(json.loads(row.msg_text)["n"] for row in expiring) == [0, 1]
    assert transport.peek(INVOICES) == 3


def test_messages_that_expired_are_counted_and_not_worked_on(backend, transport, spark):
    fill(transport, 1, time_to_be_received=timedelta(milliseconds=1))
    past = "_NG-TTL=2020-01-01 00:00:00"
    backend.sql(transport, f"UPDATE {transport.resolve(ORDERS).qualified} SET msg_headers = '{past}'")
    transport.send(ORDERS, order(1))
    (report,) = run(transport, spark)
    assert (report.messages, report.expired, report.sent) == (1, 1, 1)
    assert (numbers(transport), by_subqueue(backend, transport)) == ([1], {"X": [0, 1]})


# --- failures ---------------------------------------------------------------------------------------------


def poisoned_by(*poison):
    def transform(messages):
        n = F.col("payload.n")
        reason = F.concat(n.cast("string"), F.lit(" is poison"))
        body = F.when(n.isin(*poison), F.raise_error(reason).cast("string")).otherwise(F.col("body").cast("string"))
        return messages.select("origin", body.alias("body"))

    return transform


def test_a_message_that_fails_is_retried_by_the_schedule_until_its_last_retry(backend, transport, spark):
    """Alone: the batch is halved, and the others are processed at once."""
    fill(transport, 4)
    pipeline = declare(transform=poisoned_by(2))
    for retries, wait in enumerate(SETTINGS.retry_seconds, start=1):
        reports = run(transport, spark, pipeline)
        assert sum(report.delayed for report in reports) == 1
        assert by_subqueue(backend, transport) == {"X": [0, 1, 3], "R": [2]}
        (row,) = [row for row in rows(backend, transport) if row.subqueue == "R"]
        assert (row.retry_count, "2 is poison" in row.error_info) == (retries, True)
        assert wait - 20 < row.wait <= wait
        assert run(transport, spark, pipeline) == [], "it is not due"
        make_due(backend, transport)
    reports = run(transport, spark, pipeline)
    assert [failed.message_type for report in reports for failed in report.failed] == ["Shop.OrderPlaced"]
    (row,) = [row for row in rows(backend, transport) if row.subqueue == "F"]
    assert (row.retry_count, "2 is poison" in row.error_info, transport.claims.list()) == (3, True, [])
    (failed,) = transport.nginn.failed(transport.resolve(ORDERS))
    assert (failed.id, failed.attempts) == (row.id, 3)
    assert numbers(transport) == [0, 1, 3]
    transport.nginn.retry_failed(transport.resolve(ORDERS))
    run(transport, spark)
    assert numbers(transport) == [0, 1, 2, 3]


def test_a_recoverability_of_the_pipelines_own_goes_before_the_schedule(backend, transport, spark):
    fill(transport, 2)
    policy = Recoverability(immediate_retries=0, delayed_retries=1, delayed_retry_seconds=900)
    pipeline = declare(transform=poisoned_by(0), recoverability=policy)
    run(transport, spark, pipeline)
    (row,) = [row for row in rows(backend, transport) if row.subqueue == "R"]
    assert 880 < row.wait <= 900
    make_due(backend, transport)
    run(transport, spark, pipeline)
    assert by_subqueue(backend, transport) == {"X": [1], "F": [0]}
    fill(transport, 1)
    never = Recoverability(immediate_retries=0, delayed_retries=0)
    run(transport, spark, declare(transform=poisoned_by(0), recoverability=never))
    assert by_subqueue(backend, transport) == {"X": [1], "F": [0, 0]}


def refusing(messages):
    n = F.col("payload.n")
    refused = fail(F.concat(F.lit("too large: "), n.cast("string")), error_type="TooLarge", when=n > 2)
    return messages.select("origin", each(send("billing", body=F.col("body"), when=n <= 2), refused))


def test_what_is_refused_or_cannot_be_read_is_failed_with_its_reason(backend, transport, spark):
    fill(transport, 6)
    queue = transport.resolve(ORDERS).qualified
    ids = [row.id for row in rows(backend, transport)]
    for n, change in ((0, "msg_headers = 'a=b=c'"), (1, "msg_text = NULL"), (4, 'msg_text = \'{"n":"four"}\'')):
        backend.sql(transport, f"UPDATE {queue} SET {change} WHERE id = ?", (ids[n],))
    reports = run(transport, spark, declare(transform=refusing))
    kinds = sorted(failed.error_type for report in reports for failed in report.failed)
    assert kinds == ["MessageBodyUnreadable", "TooLarge", "TooLarge"]
    assert numbers(transport) == [2]
    found = {row.id: row for row in rows(backend, transport)}
    assert [found[one].subqueue for one in ids] == ["F", "F", "X", "F", "F", "F"]
    errors = [found[one].error_info or "" for one in ids]
    assert "'a=b=c' is not one name" in errors[0]
    assert "msg_text is NULL" in errors[1]
    assert errors[4].startswith("MessageBodyUnreadable: ")
    assert [errors[n].splitlines()[0] for n in (3, 5)] == ["TooLarge: too large: 3", "TooLarge: too large: 5"]
    assert errors[3].splitlines()[1].startswith(f"   at {__name__}.refusing() in "), "tools group failures by it"
    assert {found[one].retry_count for one in (ids[3], ids[4], ids[5])} == {1}


# --- one transaction --------------------------------------------------------------------------------------


def totals(messages):
    counted = messages.groupBy(F.lit("all").alias("name")).agg(
        F.min("origin").alias("origin"), F.count("*").alias("orders")
    )
    seen = Append("seen", messages.select("origin", F.col("payload.n").alias("n")))
    return Results(forward(messages), tables=[Merge("totals", counted, key=["name"], add=["orders"]), seen])


def test_rows_of_the_users_own_tables_are_written_with_the_batch_or_not_at_all(backend, transport, spark):
    schema = f'"{backend.schema}".' if backend.schema else ""
    backend.sql(transport, f"CREATE TABLE {schema}totals (name varchar(20) PRIMARY KEY, orders bigint)")
    backend.sql(transport, f"CREATE TABLE {schema}seen (n bigint NOT NULL CHECK (n < 3))")

    def written():
        return [tuple(row) for row in backend.sql(transport, f"SELECT n FROM {schema}seen ORDER BY n")]

    pipeline = declare(transform=totals, transaction_mode="transaction_scope")
    fill(transport, 4)
    reports = run(transport, spark, pipeline)
    assert sum(report.delayed for report in reports) == 1
    assert (written(), numbers(transport)) == ([(0,), (1,), (2,)], [0, 1, 2])
    assert backend.sql(transport, f"SELECT orders FROM {schema}totals")[0][0] == 3
    assert by_subqueue(backend, transport) == {"X": [0, 1, 2], "R": [3]}


@pytest.mark.parametrize("who", ["our next run", "a peer"])
@pytest.mark.parametrize("moment", ["holding", "completing"])
def test_what_a_killed_process_left_is_picked_up_once(backend, transport, spark, who, moment):
    transport.install(plain_queues=["results"])
    peer = peer_of(backend, transport)
    fill(transport, 5)
    command = [sys.executable, "-m", "queue_pipeline_tests.support.nginn.nginn_worker", moment, backend.url]
    schema = ["--schema", backend.schema] if backend.schema else []
    killed = subprocess.run([*command, *schema, "--table", "Orders"], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert by_subqueue(backend, transport) == {"R": [0, 1, 2, 3, 4]}
    if who == "a peer":
        assert eventually(peer.schedule) == 5
        while peer.receive():
            pass
        # The lease of the dead claim may end a moment after the peer took its messages; a later run drops it then.
        eventually(lambda: run(transport, spark) == [] and not transport.claims.list())
        assert (sorted(peer.handled()), numbers(transport)) == ([0, 1, 2, 3, 4], [])
    else:
        eventually(lambda: run(transport, spark))
        assert (peer.schedule(), peer.receive(), numbers(transport)) == (0, None, [0, 1, 2, 3, 4])
    assert (by_subqueue(backend, transport), transport.claims.list()) == ({"X": [0, 1, 2, 3, 4]}, [])
    assert transport.peek("results") == 0
