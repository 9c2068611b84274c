"""Values that cannot be sent fail their messages on both backends; the rest of the batch goes out as it should."""

import json

import pytest
from pyspark.sql import functions as F

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.declaration.outcomes import Results, each, publish, reply, send
from queue_pipeline_tests.support.processing.both_routes import fill, numbers, process

SPECIAL = ["-0.001", "0", "0.0002", "NaN", "Infinity", "-Infinity", "1e300"]
"""Messages 0, 1, … have these; the last two have something that can be sent."""


@pytest.fixture
def queues(postgresql):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error", "shop"])
    return transport


def number():
    return F.get_json_object(F.col("body").cast("string"), "$.n").cast("int")


def text():
    return F.col("body").cast("string")


def special():
    chosen = F.lit(None).cast("double")
    for at, value in enumerate(SPECIAL):
        chosen = F.when(number() == at, F.lit(value).cast("double")).otherwise(chosen)
    return F.when(number() == len(SPECIAL), 2.5).otherwise(chosen)


def odd(column):
    """A column that is null for messages with an even number."""
    return F.when(number() % 2 == 1, column)


def reasons(report):
    return sorted(one.error for one in report.failed)


def fields(messages):
    """What the odd ones have and the even ones lack."""
    whole = F.struct(number().alias("n"))
    return {
        "json": messages.select("origin", each(send("billing", json=odd(whole)))),
        "destination": messages.select("origin", each(send(odd(F.lit("billing")), body=text()))),
        "message_type": messages.select("origin", each(send("billing", body=text(), message_type=odd(F.lit("A.B"))))),
        "plain body": messages.select("origin", odd(whole).alias("body")),
        "replies": Results(replies=messages.select("origin", odd(whole).alias("body"))),
        "event": messages.select("origin", each(publish(odd(F.lit("Shop.A")), body=text()))),
        "publications": Results(publications={"Shop.A": messages.select("origin", odd(whole).alias("body"))}),
    }


SAYS = {
    "json": "send to billing: body is null",
    "destination": "send: destination is null",
    "message_type": "send to billing: message_type is null",
    "plain body": "send to billing: body is null",
    "replies": "reply: body is null",
    "event": "publish: event is null",
    "publications": "publish of Shop.A: body is null",
}


@pytest.mark.parametrize("kind", SAYS)
def test_a_null_where_a_value_belongs_fails_its_message_and_no_other(queues, spark, route, kind):
    queues.subscriptions.subscribe("Billing", "Shop.A", "billing")
    fill(queues, 6, **{"NServiceBus.ReplyToAddress": "shop"})
    report = process(queues, spark, route, lambda messages: fields(messages)[kind], publishes=["Shop.A"])
    assert (report.messages, report.sent, len(report.failed)) == (6, 3, 3)
    assert all(reason.startswith(SAYS[kind]) for reason in reasons(report))
    assert numbers(queues, "shop" if kind == "replies" else "billing") == [1, 3, 5]
    assert numbers(queues, "error") == [0, 2, 4]


def lifetimes(messages):
    return messages.select("origin", each(send("billing", body=text(), time_to_live=special())))


def plain_lifetimes(messages):
    return messages.select("origin", "body", special().alias("time_to_live"))


def delays(messages):
    return messages.select("origin", each(send("billing", body=text(), delay=special())))


@pytest.mark.parametrize("transform", [lifetimes, plain_lifetimes])
def test_an_invalid_lifetime_fails_its_message_and_no_other(queues, spark, route, transform):
    count = len(SPECIAL) + 2
    fill(queues, count)
    report = process(queues, spark, route, transform)
    assert (report.messages, report.sent, len(report.failed)) == (count, 2, len(SPECIAL))
    assert all("time_to_live is " in reason and "at most 24 days" in reason for reason in reasons(report))
    limited, unlimited = queues.show("billing", 10)
    assert (limited.headers["NServiceBus.TimeToBeReceived"], json.loads(limited.body)["n"]) == ("00:00:02.5000000", 7)
    assert "NServiceBus.TimeToBeReceived" not in unlimited.headers


def test_a_delay_that_is_no_time_fails_its_message_and_no_other(queues, spark, route):
    """One that is not above zero means at once."""
    count = len(SPECIAL) + 2
    fill(queues, count)
    report = process(queues, spark, route, delays)
    assert (report.sent, len(report.failed)) == (5, 4)
    assert all("delay is " in reason and "a hundred years" in reason for reason in reasons(report))
    assert numbers(queues, "error") == [3, 4, 5, 6]


def test_numbers_over_32_bits_fail_their_message_or_are_kept(queues, spark, route):
    def codes(messages):
        return messages.select("origin", each(reply(code=F.lit(2**31) - 1 + number())))

    def ordinals(messages):
        return messages.select("origin", "body", (F.lit(2**40) * number()).alias("ordinal"))

    fill(queues, 2, **{"NServiceBus.ReplyToAddress": "shop"})
    report = process(queues, spark, route, codes)
    assert (report.sent, reasons(report)) == (1, ["reply: code is 2147483648, over 32 bits"])
    fill(queues, 2)
    report = process(queues, spark, route, ordinals)
    assert (report.sent, reasons(report)) == (2, [])


def test_an_empty_body_and_a_header_that_is_null_are_no_failures(queues, spark, route):
    def transform(messages):
        return messages.select(
            "origin", each(send("billing", body=F.lit(""), headers={"Shop.A": odd(F.lit("x")), "Shop.B": "y"}))
        )

    fill(queues, 2)
    report = process(queues, spark, route, transform)
    assert (report.sent, reasons(report)) == (2, [])
    found = [(shown.body, "Shop.A" in shown.headers, shown.headers["Shop.B"]) for shown in queues.show("billing", 10)]
    assert sorted(found) == [(b"", False, "y"), (b"", True, "y")]


def test_ordinals_that_are_null_or_repeated_give_every_result_an_id_of_its_own(queues, spark, route):
    def transform(messages):
        copies = messages.withColumn("copy", F.explode(F.array(*map(F.lit, range(4)))))
        ordinal = F.when(F.col("copy") > 1, 7).alias("ordinal")
        return copies.select("origin", F.struct(F.col("copy").alias("n")).alias("body"), ordinal)

    fill(queues, 2)
    report = process(queues, spark, route, transform)
    assert (report.sent, reasons(report)) == (8, [])
    assert len({shown.headers["NServiceBus.MessageId"] for shown in queues.show("billing", 10)}) == 8


def test_a_span_that_is_wrong_for_all_messages_is_refused_where_it_is_written(spark):
    for wrong in ({"time_to_live": -0.001}, {"time_to_live": float("nan")}, {"delay": float("inf")}):
        for outcome in (lambda **options: send("billing", **options), reply):
            with pytest.raises(ConfigurationError, match="it has to be at"):
                outcome(body=F.lit("x"), **wrong)
    with pytest.raises(ConfigurationError, match=r"publish of 'Shop\.A': time_to_live is 0 s"):
        publish("Shop.A", body=F.lit("x"), time_to_live=0)
