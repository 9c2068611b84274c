"""Events that a transform publishes, on a real database with a real Spark, whichever way a batch takes."""

import json

import pytest
from pyspark.sql import functions as F

from queue_pipeline.errors import ClaimLostError, SubscriberError, TableNotFoundError
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.outcomes import Results, each, fail, publish, send
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.errors import TransformError
from queue_pipeline.processing.results.result_ids import result_ids
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import Event, QueueAddress, new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing.processed import process as process_claim

pytestmark = pytest.mark.spark_on_sqlite

ACCEPTED = Event("Shop.OrderAccepted, Shop", ("Shop.IOrderEvent",))


@pytest.fixture
def transport(backend):
    transport = backend.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "shipping", "tap", "error"])
    return transport


@pytest.fixture(params=["local", "executors"])
def route(request):
    return request.param


@pytest.fixture
def process(transport, spark, route):
    def run(transform, claim=None, **options):
        pipeline = declare(transform, route=route, **options)
        processor = BatchProcessor(pipeline, transport, *workers(pipeline, transport, spark))
        report = process_claim(processor, pipeline, claim or transport.claim("orders", "me", 1_000))
        assert report.backend == route
        return report

    return run


def declare(transform, **options):
    given = {"name": "orders", "input_queue": "orders", "publishes": [ACCEPTED], "transform": transform}
    return QueuePipeline(**{**given, **options})


def workers(pipeline, transport, spark):
    sessions = AttemptSessions(lambda: spark)
    return SparkTransformer(pipeline, sessions), Executors(pipeline, transport, sessions)


def fill(transport, count):
    transport.send("orders", [new_message(json.dumps({"n": n})) for n in range(count)])


def number():
    return F.get_json_object(F.col("body").cast("string"), "$.n").cast("int")


def accept(messages):
    return messages.select("origin", each(publish("Shop.OrderAccepted", json=F.struct(number().alias("n")))))


def numbers(transport, queue):
    return sorted(json.loads(shown.body)["n"] for shown in transport.show(queue, 1_000))


def test_every_subscriber_gets_a_copy_of_every_event_once(transport, process):
    transport.subscriptions.subscribe("billing", "Shop.OrderAccepted")
    transport.subscriptions.subscribe("shipping", "Shop.IOrderEvent")
    transport.subscriptions.subscribe("shipping", "Shop.OrderAccepted")
    transport.subscriptions.subscribe("tap", "System.Object")
    fill(transport, 3)
    report = process(accept)
    assert (report.messages, report.sent) == (3, 9)
    assert [numbers(transport, queue) for queue in ("billing", "shipping", "tap")] == [[0, 1, 2]] * 3
    assert (transport.peek("orders"), transport.claims.list()) == (0, [])
    assert not [shown for shown in transport.show("error")]


def test_copies_have_one_id_which_is_that_of_the_event(transport, process):
    for queue in ("billing", "shipping"):
        transport.subscriptions.subscribe(queue, "Shop.OrderAccepted")
    fill(transport, 1)
    (order,) = transport.show("orders")
    process(accept)
    (first,), (second,) = transport.show("billing"), transport.show("shipping")
    assert first.headers == second.headers
    assert first.id != second.id
    assert first.headers[wire.MESSAGE_ID] == result_ids([order.id], "orders", "Shop.OrderAccepted", [0])[0]
    assert first.headers[wire.MESSAGE_INTENT] == "Publish"
    assert first.headers[wire.ENCLOSED_MESSAGE_TYPES] == "Shop.OrderAccepted, Shop;Shop.IOrderEvent"
    assert first.headers[wire.RELATED_TO] == order.headers[wire.MESSAGE_ID]
    assert first.headers[wire.CONVERSATION_ID] == order.headers[wire.CONVERSATION_ID]
    assert first.headers[wire.REPLY_TO_ADDRESS] == transport.resolve("orders").canonical


def mixed(messages):
    n = number()
    return messages.select(
        "origin",
        each(
            publish("Shop.OrderAccepted", json=F.struct(n.alias("n")), headers={"tenant": "north"}, when=n == 0),
            publish(F.lit("Shop.OrderRefused"), body=F.lit("<no/>"), time_to_live=60, when=n == 1),
            send("shipping", json=F.struct(n.alias("n")), when=n <= 1),
            publish("Shop.OrderAccepted", json=F.struct(n.alias("n")), when=n == 2),
            fail("not this one", when=n == 2),
        ),
    )


def test_events_sends_and_failures_go_together(transport, process):
    transport.subscriptions.subscribe("billing", "Shop.OrderAccepted")
    transport.subscriptions.subscribe("tap", "Shop.OrderRefused")
    fill(transport, 3)
    refused = Event("Shop.OrderRefused", content_type="text/xml")
    report = process(mixed, publishes=[ACCEPTED, refused], output_queues=["shipping"])
    assert (report.sent, len(report.failed)) == (4, 1)
    assert numbers(transport, "billing") == [0]
    assert numbers(transport, "shipping") == [0, 1]
    assert [shown.headers[wire.MESSAGE_INTENT] for shown in transport.show("shipping")] == ["Send", "Send"]
    assert transport.show("billing")[0].headers["tenant"] == "north"
    (no,) = transport.show("tap")
    assert (no.body, no.headers[wire.CONTENT_TYPE]) == (b"<no/>", "text/xml")
    assert no.headers[wire.TIME_TO_BE_RECEIVED] == "00:01:00"
    assert transport.peek("error") == 1


def frames(messages):
    good = messages.where(number() > 0).select("origin", F.struct(number().alias("n")).alias("body"))
    return Results(publications={"Shop.OrderAccepted": good})


def test_events_may_be_returned_as_frames(transport, process):
    transport.subscriptions.subscribe("billing", "Shop.OrderAccepted")
    fill(transport, 3)
    assert process(frames).sent == 2
    assert numbers(transport, "billing") == [1, 2]


def test_an_event_without_subscribers_is_no_failure(transport, process):
    fill(transport, 2)
    report = process(accept)
    assert (report.messages, report.sent, report.failed) == (2, 0, [])
    assert transport.peek("orders") == 0


def test_an_owner_that_lost_its_batch_publishes_nothing(transport, process):
    transport.subscriptions.subscribe("billing", "Shop.OrderAccepted")
    fill(transport, 3)
    claim = transport.claim("orders", "slow run", 100)

    def while_another_takes_over(messages):
        transport.claims.adopt(claim, "another run")
        return accept(messages)

    with pytest.raises(ClaimLostError):
        process(while_another_takes_over, claim)
    assert transport.peek("billing") == 0


def computed(messages):
    return messages.select("origin", each(publish(F.concat(F.lit("Shop."), F.lit("Typo")), body=F.col("body"))))


def test_an_event_that_was_not_declared_is_refused_when_it_is_seen(transport, process):
    fill(transport, 1)
    with pytest.raises(TransformError, match=r"publishes Shop\.Typo, which is not among .*\(Shop\.OrderAccepted\)"):
        process(computed)
    assert transport.claims.list()[0].messages == 1


@pytest.mark.parametrize("column", ["destination", "delay", "message_type", "outcome"])
def test_a_frame_of_events_has_no_column_that_means_nothing_there(sqlite, spark, column):
    transport = sqlite.transport()
    transport.install("orders")
    fill(transport, 1)
    pipeline = declare(
        lambda messages: Results(
            publications={"Shop.OrderAccepted": messages.select("origin", "body", F.lit(1).alias(column))}
        )
    )
    with pytest.raises(TransformError, match=f"columns that mean nothing there: {column}"):
        processor = BatchProcessor(pipeline, transport, *workers(pipeline, transport, spark))
        process_claim(processor, pipeline, transport.claim("orders", "me", 10))


def test_a_subscriber_without_a_queue_costs_no_message_an_attempt(transport, spark, route):
    transport.subscriptions.subscribe("billing", "Shop.OrderAccepted")
    transport.subscriptions.subscribe("zombie", "Shop.IOrderEvent", QueueAddress("not there"))
    fill(transport, 4)
    pipeline = declare(accept, route=route)
    recovery = Recovery(pipeline, transport, *workers(pipeline, transport, spark))
    claim = transport.claim("orders", "me", 100)
    with pytest.raises(
        SubscriberError, match=r"endpoint zombie\).*queue-pipeline unsubscribe zombie Shop\.IOrderEvent"
    ):
        recovery.attempt(claim)
    (held,) = transport.claims.list()
    assert (held.messages, held.failures) == (4, 0)
    assert (transport.peek("billing"), transport.peek("error")) == (0, 0)
    transport.subscriptions.unsubscribe("zombie", "Shop.IOrderEvent")
    (report,) = recovery.attempt(claim).reports
    assert (report.messages, report.sent) == (4, 4)
    assert numbers(transport, "billing") == [0, 1, 2, 3]


def test_a_database_without_the_table_works_for_all_who_publish_nothing(transport, backend, process):
    backend.sql(transport, f"DROP TABLE {transport.subscriptions.table.qualified}")
    fill(transport, 1)
    with pytest.raises(TableNotFoundError, match="queue-pipeline install QUEUE"):
        process(accept)
    (held,) = transport.claims.list()
    claim = held.held
    assert process(lambda messages: messages.select("origin", "body"), claim, publishes=[], output_queues=["billing"])
    assert numbers(transport, "billing") == [0]
