"""Pydantic models as body schemas, through real runs on both routes: what arrives in Spark, and what is refused."""

import json
from decimal import Decimal
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator, model_validator
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import new_message
from queue_pipeline.transport.messages import headers as wire

RATES = {"EUR": 100, "CHF": 95}


class Card(BaseModel):
    kind: Literal["card"]
    number: str = Field(min_length=4)


class Transfer(BaseModel):
    kind: Literal["transfer"]
    iban: str
    days: int = 14


class Line(BaseModel):
    sku: str
    quantity: int = Field(ge=1)

    @field_validator("sku")
    @classmethod
    def upper(cls, value: str) -> str:
        """Article numbers are written in capitals."""
        if " " in value:
            raise ValueError("an article number has no spaces")
        return value.upper()


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    order_id: str = Field(alias="OrderId")
    amount: Decimal = Field(alias="Amount", max_digits=20, decimal_places=2)
    currency: str = Field(default="EUR", alias="Currency")
    payment: Annotated[Card | Transfer, Field(alias="Payment", discriminator="kind")]
    lines: list[Line] = Field(default_factory=list, alias="Lines")

    @field_validator("currency")
    @classmethod
    def known(cls, value: str) -> str:
        """A currency without a rate raises KeyError, which pydantic does not turn into a validation error."""
        return value if RATES[value] else ""

    @model_validator(mode="after")
    def has_lines(self) -> "Order":
        """Orders on account need lines."""
        if isinstance(self.payment, Transfer) and not self.lines:
            raise ValueError("an order on account has lines")
        return self

    @computed_field
    def pieces(self) -> int:
        """How many pieces are ordered."""
        return sum(line.quantity for line in self.lines)


@pytest.fixture(params=["local", "executors"])
def route(request):
    return request.param


@pytest.fixture
def queues(postgresql):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


def run(transport, spark, route, model, seen=None):
    """A run that sends every payload on as JSON; what type payloads have is noted in `seen`."""

    def transform(messages):
        if seen is not None:
            seen.append(messages.schema["payload"].dataType.simpleString())
        kept = F.to_json("payload", {"ignoreNullFields": "false"})
        return messages.select("origin", kept.alias("body"))

    pipeline = QueuePipeline(
        name="orders",
        input_queue="orders",
        output_queues=["billing"],
        transform=transform,
        body_schema=model,
        route=route,
        linger_seconds=0,
        peek_delay=0.1,
    )
    sessions, attempts = AttemptSessions(lambda: spark), []
    executors = Executors(pipeline, transport, sessions)
    recovery = Recovery(pipeline, transport, SparkTransformer(pipeline, sessions), executors)
    ended = PipelineRun(pipeline, transport, "run 1", recovery, slots=2, on_attempt=attempts.append).run()
    assert (ended.reason, ended.failure) == ("the queue is empty", None)
    assert [attempt for attempt in attempts if attempt.failure] == [], "no batch failed as a whole"
    assert {report.backend for attempt in attempts for report in attempt.reports} == {route}
    assert (transport.peek("orders"), transport.claims.list()) == (0, [])


def fill(transport, *bodies):
    transport.send("orders", [new_message(body if isinstance(body, str) else json.dumps(body)) for body in bodies])


def arrived(transport):
    """Payloads as Spark had them, by the order's number; decimals keep their digits."""
    rows = [json.loads(shown.body, parse_float=Decimal) for shown in transport.show("billing", 1_000)]
    return {row["order_id"]: row for row in rows}


def refused(transport):
    """Error type and words of each message in the error queue, by its body."""
    return {
        shown.body.decode(): (shown.headers[wire.EXCEPTION_TYPE], shown.headers[wire.EXCEPTION_MESSAGE])
        for shown in transport.show("error", 1_000)
    }


def card(order_id="1", **fields):
    return {"OrderId": order_id, "Amount": "1.50", "Payment": {"kind": "card", "number": "4711"}, **fields}


def test_aliases_validators_computed_fields_and_unions_arrive_as_columns(queues, spark, route):
    transfer = {"kind": "transfer", "iban": "AT61"}
    lines = [{"sku": "ab-1", "quantity": 2}, {"sku": "ab-2", "quantity": 3}]
    fill(queues, card("1"), card("2", Payment=transfer, Lines=lines, Currency="CHF"))
    seen = []
    run(queues, spark, route, Order, seen)
    assert set(seen) == {
        "struct<order_id:string,amount:decimal(20,2),currency:string,"
        "payment:struct<kind:string,number:string,iban:string,days:bigint>,"
        "lines:array<struct<sku:string,quantity:bigint>>,pieces:bigint>"
    }
    assert arrived(queues) == {
        "1": {
            "order_id": "1",
            "amount": Decimal("1.50"),
            "currency": "EUR",
            "payment": {"kind": "card", "number": "4711", "iban": None, "days": None},
            "lines": [],
            "pieces": 0,
        },
        "2": {
            "order_id": "2",
            "amount": Decimal("1.50"),
            "currency": "CHF",
            "payment": {"kind": "transfer", "number": None, "iban": "AT61", "days": 14},
            "lines": [{"sku": "AB-1", "quantity": 2}, {"sku": "AB-2", "quantity": 3}],
            "pieces": 5,
        },
    }
    assert queues.peek("error") == 0


BAD = {
    "an unknown field": (card(Colour="red"), "Colour: Extra inputs are not permitted (given: 'red')"),
    "a Python name for an alias": (
        {**card(), "currency": "EUR"},
        "currency: Extra inputs are not permitted (given: 'EUR')",
    ),
    "a missing field": ({"OrderId": "1", "Amount": "1.50"}, "Payment: Field required"),
    "an unknown kind": (card(Payment={"kind": "cash"}), "Payment: Input tag 'cash' found using 'kind' does not match"),
    "a bad field of one kind": (
        card(Payment={"kind": "card", "number": "1"}),
        "Payment.card.number: String should have at least 4 characters (given: '1')",
    ),
    "a validator of a list's item": (
        card(Lines=[{"sku": "ok", "quantity": 1}, {"sku": "a b", "quantity": 1}]),
        "Lines.1.sku: Value error, an article number has no spaces (given: 'a b')",
    ),
    "a validator of the model": (
        card(Payment={"kind": "transfer", "iban": "AT61"}),
        "Value error, an order on account has lines",
    ),
    "too many digits": (card(Amount="123456789012345678901.50"), "Amount: Decimal input should have no more than 20"),
    "no JSON": ("no json", "Invalid JSON: expected ident at line 1 column 2"),
}


def test_a_bad_body_goes_to_the_error_queue_with_pydantics_message_and_the_field(queues, spark, route):
    fill(queues, card("good"), *(body for body, _ in BAD.values()), card("good too"))
    run(queues, spark, route, Order)
    found = refused(queues)
    assert len(found) == len(BAD)
    for name, (body, words) in BAD.items():
        error_type, text = found[body if isinstance(body, str) else json.dumps(body)]
        assert (name, error_type, text[: len(words)]) == (name, "MessageBodyUnreadable", words)
    assert set(arrived(queues)) == {"good", "good too"}


def test_a_validator_that_raises_another_error_fails_its_message_alone(queues, spark, route):
    unknown = card("bad", Currency="XXX")
    fill(queues, card("1"), unknown, card("2"))
    run(queues, spark, route, Order)
    assert refused(queues) == {json.dumps(unknown): ("KeyError", "'XXX'")}
    assert set(arrived(queues)) == {"1", "2"}


def test_a_decimal_of_20_digits_arrives_exactly_as_text_and_as_a_number(queues, spark, route):
    digits = "123456789012345678.91"
    as_number = json.dumps(card("number")).replace('"1.50"', digits)
    assert digits in as_number
    fill(queues, card("text", Amount=digits), as_number)
    run(queues, spark, route, Order)
    assert {name: row["amount"] for name, row in arrived(queues).items()} == {
        "text": Decimal(digits),
        "number": Decimal(digits),
    }


def local_model():
    """A model that no worker can import."""
    most = 10

    class Local(BaseModel):
        order_id: str = Field(alias="OrderId")
        payment: Annotated[Card | Transfer, Field(discriminator="kind")]
        count: int

        @field_validator("count")
        @classmethod
        def few(cls, value: int) -> int:
            if value > most:
                raise ValueError(f"at most {most}")
            return value

        @computed_field
        def twice(self) -> int:
            return 2 * self.count

    return Local


def test_a_model_that_is_defined_inside_a_function_works_as_well(queues, spark, route):
    payment = {"kind": "card", "number": "4711"}
    fill(queues, *({"OrderId": str(count), "payment": payment, "count": count} for count in (1, 11)))
    run(queues, spark, route, local_model())
    ((_, words),) = refused(queues).values()
    assert words == "count: Value error, at most 10 (given: 11)"
    assert arrived(queues) == {
        "1": {
            "order_id": "1",
            "payment": {"kind": "card", "number": "4711", "iban": None, "days": None},
            "count": 1,
            "twice": 2,
        }
    }
