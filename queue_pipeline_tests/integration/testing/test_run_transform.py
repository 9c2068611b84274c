"""What `run_transform` says becomes of messages is what becomes of them: each pipeline runs both ways."""

from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from pyspark.sql import functions as F

from queue_pipeline.defs.orders import orders
from queue_pipeline.errors import InvalidMessageError
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.outcomes import (
    Append,
    Results,
    add_to,
    append_to,
    each,
    fail,
    publish,
    reply,
    send,
)
from queue_pipeline.processing.declaration.pipeline import Output, QueuePipeline
from queue_pipeline.processing.errors import TransformError
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.testing import TransformResult, message, run_transform, temporary_transport
from queue_pipeline.transport import Event
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing.processed import process

OF_THE_MOMENT = (wire.MESSAGE_ID, wire.TIME_SENT, wire.DELIVER_AT)
"""Headers that differ from batch to batch: ids are made of the ids of rows."""


class Ask(BaseModel):
    n: int
    country: str = "AT"


def price(messages):
    n, country = F.col("payload.n"), F.col("payload.country")
    return messages.select(
        "origin",
        each(
            send("billing", json=F.struct((n * 2).alias("twice")), headers={"Shop.Country": country}, when=n > 0),
            send("later", body=F.lit("remind"), delay=60, when=n == 2),
            send("billing", body=F.lit("short-lived"), message_type="Shop.Hint", time_to_live=5, when=n == 3),
            reply(json=F.struct(n), message_type="Shop.Price", when=n == 4),
            reply(code=F.lit(404), when=n == 5),
            publish("Shop.Priced", json=F.struct(n), when=n > 3),
            add_to("totals", key={"country": country}, add={"pieces": n}, when=n > 0),
            append_to("seen", {"n": n}, when=n > 4),
            fail(F.concat(F.lit("nothing to sell in "), country), error_type="NothingToSell", when=n == 0),
        ),
    )


def declare(transform=price, **options):
    given = {
        "name": "prices",
        "input_queue": "orders",
        "output_queues": [Output(queue="billing", message_type="Shop.Invoice"), "later"],
        "publishes": [Event("Shop.Priced, Shop", ("Shop.IEvent",))],
        "body_schema": Ask,
    }
    return QueuePipeline(**{**given, "transform": transform, **options})


def given(*bodies):
    """Messages that can be replied to, as a test writes them."""
    return [message(body, id=f"m{at}", reply_to="shop") for at, body in enumerate(bodies, 1)]


@pytest.fixture(scope="module")
def really(spark):
    """The same messages through a claim on a database, and what was found there afterwards, in the same form."""

    def run(pipeline, messages):
        with temporary_transport("orders", "billing", "shipping", "later", "shop", "tap", endpoint="orders") as queues:
            with queues.transaction() as connection:
                for columns in ("totals (country text PRIMARY KEY, pieces bigint)", "seen (n bigint)"):
                    connection.exec_driver_sql(f"CREATE TABLE {columns}")
                connection.exec_driver_sql(
                    "CREATE TABLE order_totals (country text, day date, orders bigint, revenue numeric, "
                    "PRIMARY KEY (country, day))"
                )
            queues.subscriptions.subscribe("tap", "Shop.Priced")
            queues.send("orders", messages)
            transformer = SparkTransformer(pipeline, AttemptSessions(lambda: spark))
            report = process(
                BatchProcessor(pipeline, queues, transformer), pipeline, queues.claim("orders", "me", 1_000)
            )
            return found(pipeline, queues, report)

    return run


def found(pipeline, queues, report):
    with queues.transaction() as connection:
        rows = {
            name: [dict(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}").mappings()]
            for name in ("totals", "seen", "order_totals")
        }
        delayed = connection.exec_driver_sql('SELECT Headers, Body FROM "orders.Delayed"').all()
    waiting = {name: queues.show(name, 1_000) for name in ("billing", "shipping", "shop", "tap", "error")}
    sent = {name: [(one.body, one.headers) for one in shown] for name, shown in waiting.items()}
    sent["later"] = [(bytes(body), wire.decode(headers)) for headers, body in delayed]
    return SimpleNamespace(
        sends={output.queue: comparable(sent[output.queue]) for output in pipeline.output_queues},
        replies=comparable(sent["shop"]),
        publications={event.name: comparable(sent["tap"]) for event in pipeline.publishes},
        failures=[
            (headers[wire.MESSAGE_ID], headers[wire.EXCEPTION_TYPE], headers[wire.EXCEPTION_MESSAGE], body)
            for body, headers in sent["error"]
        ],
        tables={name: texts(table) for name, table in rows.items() if table},
        without_outcome=report.without_outcome,
    )


def comparable(messages):
    """Bodies and the headers that say the same in every batch."""
    return [
        (body, {name: value for name, value in headers.items() if name not in OF_THE_MOMENT})
        for body, headers in messages
    ]


def texts(rows):
    """Rows without what SQLite makes of their types."""
    return [
        {name: f"{Decimal(str(value)):f}" if name == "revenue" else str(value) for name, value in row.items()}
        for row in rows
    ]


def as_stored(result):
    """The values of a result, in the form of what is found on a database."""

    def stored(messages):
        return comparable([(b"" if one.body is None else one.raw_body, one.headers) for one in messages])

    return SimpleNamespace(
        sends={queue: stored(sent) for queue, sent in result.sends.items()},
        replies=stored(result.replies),
        publications={event: stored(sent) for event, sent in result.publications.items()},
        failures=[(one.id, one.error_type, one.error, one.raw_body) for one in result.failures],
        tables={name: texts(table) for name, table in result.tables.items()},
        without_outcome=result.without_outcome,
    )


def everything(messages):
    """The forms of a result other than `each`."""
    n = F.col("payload.n")
    good = messages.where(n % 2 == 0)
    return Results(
        sends={"billing": good.select("origin", F.to_json(F.struct(n)).alias("body"))},
        replies=messages.where(n == 1).select("origin", F.lit("odd").alias("body")),
        failures=messages.where(n == 3).select("id", F.lit("three").alias("error")),
        publications={"Shop.Priced": good.select("origin", F.lit("{}").alias("body"))},
        tables=[Append("seen", good.select("origin", n.alias("n")))],
    )


def echo(messages):
    long = F.length("body") > 7
    return messages.select("origin", each(send("billing", body=F.col("body"), when=long), reply(code=1, when=long)))


SHOP = given(*({"n": n} for n in range(7)), {"n": 1, "country": "DE"}, {"n": "many"}, "[1", b"\xff", "")
ORDER = {
    "OrderId": "SO-1",
    "Customer": "Anna Weber",
    "Country": "AT",
    "Currency": "EUR",
    "PlacedAt": "2026-11-18T10:00:00Z",
    "Lines": [{"Sku": "BOOK-1", "Quantity": 20, "UnitPrice": 9.99}],
}
CASES = {
    "outcomes of every kind": (declare(), SHOP),
    "frames for each queue, a schema in DDL": (declare(everything, body_schema="n int NOT NULL"), SHOP),
    "required outcomes, no schema": (declare(echo, body_schema=None, require_outcome=True), SHOP),
    "the worked example": (orders, given(ORDER, {**ORDER, "Country": "NZ"}, {**ORDER, "Currency": "USD"}, ORDER)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_result_equals_that_of_processing_a_real_claim(case, spark, really):
    pipeline, messages = CASES[case]
    assert vars(as_stored(run_transform(pipeline, messages, spark=spark))) == vars(really(pipeline, messages))


def test_values_are_plain_python(spark):
    result = run_transform(declare(), SHOP, spark=spark)
    assert result.bodies("billing")[:3] == [{"twice": 2}, {"twice": 4}, {"twice": 6}]
    (later,) = result.sends["later"]
    assert (later.body, later.delay, later.related_to) == ("remind", timedelta(minutes=1), "m3")
    hint = result.sends["billing"][3]
    assert (hint.message_type, hint.time_to_live, hint.related_to) == ("Shop.Hint", timedelta(seconds=5), "m4")
    assert [(reply.body, reply.code, reply.destination) for reply in result.replies] == [
        ({"n": 4}, None, "shop"),
        (None, 404, "shop"),
    ]
    assert [event.body for event in result.publications["Shop.Priced"]] == [{"n": 4}, {"n": 5}, {"n": 6}]
    assert result.tables == {
        "totals": [{"country": "AT", "pieces": 21}, {"country": "DE", "pieces": 1}],
        "seen": [{"n": 5}, {"n": 6}],
    }
    assert [(refused.id, refused.error_type, refused.body) for refused in result.failures] == [
        ("m1", "NothingToSell", {"n": 0}),
        ("m9", "MessageBodyUnreadable", {"n": "many"}),
        ("m10", "MessageBodyUnreadable", "[1"),
        ("m11", "MessageBodyUnreadable", b"\xff"),
        ("m12", "MessageBodyUnreadable", None),
    ]
    assert result.failures[0].error == "nothing to sell in AT"


def test_messages_are_mappings_models_text_or_bytes(spark):
    result = run_transform(declare(), [{"n": 1}, Ask(n=2), '{"n": 3}', b'{"n": 6}'], spark=spark)
    assert result.bodies("billing") == [{"twice": 2}, {"twice": 4}, {"twice": 6}, "short-lived", {"twice": 12}]


def test_a_transform_sees_the_type_the_headers_and_the_attempt_that_a_test_gives(spark):
    def look(messages):
        seen = F.struct("message_type", F.col("headers")["Shop.Tenant"].alias("tenant"), "attempt")
        return messages.select("origin", each(send("billing", json=seen)))

    given = message(b"", message_type="Shop.Ask", headers={"Shop.Tenant": "north"})
    result = run_transform(declare(look, body_schema=None), [given], spark=spark, attempt=3)
    assert result.bodies("billing") == [{"message_type": "Shop.Ask", "tenant": "north", "attempt": 3}]


def test_no_messages_lead_to_nothing(spark):
    result = run_transform(declare(), [], spark=spark)
    assert result == TransformResult({"billing": [], "later": []}, [], {"Shop.Priced": []}, [], {}, 0)


def test_ids_of_results_are_the_same_in_every_run(spark):
    first, second = (run_transform(declare(), SHOP, spark=spark) for _ in range(2))
    assert [sent.id for sent in first.sends["billing"]] == [sent.id for sent in second.sends["billing"]]


def test_what_a_run_would_refuse_is_raised(spark):
    with pytest.raises(TransformError, match=r"sends to nowhere, which is not among its output_queues \(billing\)"):
        run_transform(
            declare(lambda m: m.select("origin", each(send("nowhere", body=F.lit("x")))), output_queues=["billing"]),
            [{"n": 1}],
            spark=spark,
        )
    with pytest.raises(InvalidMessageError, match="the body is int"):
        run_transform(declare(), [1], spark=spark)
