"""A client asks, a pipeline answers: through a real Spark, by both ways that a batch can take."""

import json

import pytest
from pyspark.sql import functions as F

from queue_pipeline.client import CallbackSettings, QueueClient
from queue_pipeline.errors import AccessDeniedError
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.outcomes import each, fail, reply, send
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import InstallOptions, QueueAddress, QueueTransport, new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import run as run_plain

pytestmark = pytest.mark.spark_on_sqlite

AT_ONCE = Recoverability(immediate_retries=0, delayed_retries=0)
QUICK = CallbackSettings(first_delay=0.005, peek_delay=0.05, idle_delay=0.05)
HOSTILE = (
    "'; DROP TABLE orders;--",
    '"; DROP TABLE "orders"; --',
    "nowhere",
    "x" * 300,
    "nul\0in it",
    '"no such schema"."orders"',
)


def prices(messages):
    pieces = F.col("payload.pieces")
    return messages.select(
        "origin",
        each(
            reply(json=F.struct((pieces * 3).alias("price")), message_type="Shop.Price", when=pieces > 0),
            reply(code=F.lit(404), when=pieces == 0),
            fail("negative", when=pieces < 0),
        ),
    )


def declare(route="local", **options):
    given = {"name": "prices", "input_queue": "orders", "transform": prices, "body_schema": "pieces int NOT NULL"}
    run = {"route": route, "linger_seconds": 0, "peek_delay": 0.1, "recoverability": AT_ONCE}
    return QueuePipeline(**{**given, **run, **options})


def run(transport, spark, pipeline):
    executors = Executors(pipeline, transport, AttemptSessions(lambda: spark))
    recovery = Recovery(pipeline, transport, SparkTransformer(pipeline, AttemptSessions(lambda: spark)), executors)
    drain = PipelineRun(pipeline, transport, "run 1", recovery, slots=1)
    ended = drain.run()
    assert (ended.reason, ended.failure) == ("the queue is empty", None)


@pytest.fixture(params=["local", "executors"])
def route(request):
    return request.param


@pytest.fixture
def client(transport):
    with QueueClient(transport, "shop", discriminator="web1", settings=QUICK, create=True) as client:
        yield client


def test_each_request_to_a_pipeline_gets_its_own_reply(transport, client, spark, route):
    futures = {n: client.submit("orders", {"pieces": n}, 120, message_type="Shop.Ask") for n in range(20)}
    run(transport, spark, declare(route))
    for n, future in futures.items():
        answer = future.result(20)
        if n:
            assert (answer.json(), answer.message_type, answer.code) == ({"price": 3 * n}, "Shop.Price", None)
        else:
            assert (answer.code, answer.body) == (404, b"")
        assert answer.headers[wire.MESSAGE_INTENT] == "Reply"
        assert answer.headers[wire.REPLY_TO_ADDRESS] == transport.resolve("orders").canonical
    assert (transport.peek("error"), transport.peek(client.callback_queue)) == (0, 0)


def test_a_hostile_reply_address_fails_its_own_message_and_no_other(transport, client, spark, route):
    """AS-09: whatever it says, it is the name of a table that does not exist."""
    good = [client.submit("orders", {"pieces": n}, 120) for n in (1, 2)]
    transport.send("orders", [new_message('{"pieces": 7}', reply_to=address) for address in HOSTILE])
    good.append(client.submit("orders", {"pieces": 3}, 120))
    run(transport, spark, declare(route))
    assert [future.result(20).json()["price"] for future in good] == [3, 6, 9]
    failed = [shown.headers for shown in transport.show("error", 100)]
    assert sorted(headers[wire.REPLY_TO_ADDRESS] for headers in failed) == sorted(HOSTILE)
    kinds = {headers[wire.EXCEPTION_TYPE].rpartition(".")[2] for headers in failed}
    assert kinds <= {"QueueNotFoundError", "SchemaNotFoundError", "AddressError"}
    assert {headers[wire.FAILED_QUEUE] for headers in failed} == {transport.resolve("orders").canonical}
    assert (transport.peek("orders"), transport.claims.list()) == (0, [])


def test_a_reply_to_a_table_that_is_forbidden_fails_its_own_message(transport):
    """Otherwise one message could stop a pipeline for good."""
    denied = AccessDeniedError("permission denied for table secrets")
    denied.queue = transport.resolve("secrets").canonical

    def forbidden(bodies):
        if b"1" in bodies:
            raise denied

    transport.send("orders", [new_message(f"{n}") for n in range(3)])
    ended, _ = run_plain(transport, PlainTransformer(forbidden))
    assert ended.failure is None
    assert [shown.body for shown in transport.show("error")] == [b"1"]
    denied.queue = transport.resolve("billing").canonical
    transport.send("orders", new_message("1"))
    pipeline = QueuePipeline(
        name="orders", input_queue="orders", output_queues=["billing"], transform=lambda m: m, linger_seconds=0
    )
    ended, _ = run_plain(transport, PlainTransformer(forbidden), pipeline)
    assert ended.failure is denied, "what every batch needs is no message's fault"


def test_an_account_without_rights_on_a_reply_address_goes_on_with_the_next_message(postgresql, postgres):
    role = f"replies_{postgresql.schema}"
    postgres.run_sql(f"CREATE ROLE {role} LOGIN PASSWORD 'pw'")
    owner = postgresql.transport()
    owner.install("orders", plain_queues=["error"], options=InstallOptions(grant_to=role))
    owner.install(plain_queues=["secrets"])
    owner.send("orders", new_message("1"))
    with QueueTransport(postgres.url(user=role, password="pw"), schema=postgresql.schema) as runtime:
        ended, _ = run_plain(runtime, PlainTransformer(queue="secrets"))
    assert ended.failure is None
    (failed,) = owner.show("error")
    assert failed.headers[wire.EXCEPTION_TYPE].endswith("AccessDeniedError")
    assert owner.peek("secrets") == 0


def ask_further(messages):
    return messages.select("origin", each(send("billing", body=F.col("body"))))


def test_a_pipeline_says_where_answers_to_what_it_sends_are_to_go(transport, client, spark, route):
    instance = client.callback_queue.canonical
    transport.send("orders", new_message("{}"))
    pipeline = declare(route, transform=ask_further, output_queues=["billing"], body_schema=None, reply_to=instance)
    run(transport, spark, pipeline)
    (shown,) = transport.show("billing")
    assert shown.headers[wire.REPLY_TO_ADDRESS] == instance


def test_a_pipeline_consumes_the_queue_of_an_instance(backend, transport, spark):
    address = "shop.web2" if backend.name == "sqlserver" else '"shop.web2"'
    transport.install(address, plain_queues=[])
    assert transport.resolve(address) == transport.resolve(QueueAddress("shop.web2"))
    pipeline = declare(name="web2", input_queue=address, transform=ask_further, output_queues=["billing"])
    transport.send(QueueAddress("shop.web2"), new_message(json.dumps({"pieces": 1})))
    run(transport, spark, pipeline)
    (shown,) = transport.show("billing")
    assert shown.headers[wire.REPLY_TO_ADDRESS] == transport.resolve(address).canonical
    made = build_definitions([declare(), pipeline], autostart=False)
    assert {"prices_pipeline", "web2_pipeline"} <= {job.name for job in made.jobs or ()}
