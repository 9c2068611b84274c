import importlib.util
import json
import struct
import uuid
from datetime import date

import click
import pytest

from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.benchmarks import ours
from queue_pipeline_tests.benchmarks.__main__ import check_extra
from queue_pipeline_tests.benchmarks.consumers.by_hand_tuned import Work
from queue_pipeline_tests.benchmarks.consumers.envelopes import Envelopes, failed, read_headers, relate
from queue_pipeline_tests.benchmarks.consumers.pricing import RefusedError, price
from queue_pipeline_tests.benchmarks.orders import Source
from queue_pipeline_tests.benchmarks.workload import copy_rows, make_samples
from tools.example.orders import order_message
from tools.example.samples import KINDS, UNREADABLE_HEADERS


def order(**changes) -> bytes:
    lines = [
        {"Sku": "PEN-BLK", "Quantity": 20, "UnitPrice": 1.11},
        {"Sku": "MUG-RED", "Quantity": 1, "UnitPrice": 12.9},
    ]
    known = {
        "OrderId": "SO-1",
        "Customer": "Zoë",
        "Country": "DE",
        "Currency": "EUR",
        "PlacedAt": "2025-04-30T23:30:00.1234567Z",
        "Lines": lines,
    }
    return json.dumps({**known, **changes}).encode()


def copied_rows(rows: list[bytes]) -> list[tuple[uuid.UUID, dict[str, str], bytes]]:
    found = []
    for row in rows:
        fields, _, raw, length = struct.unpack_from("!hi16si", row)
        headers, rest = row[26 : 26 + length], row[26 + length :]
        (size,) = struct.unpack_from("!i", rest)
        assert (fields, len(rest)) == (3, 4 + size)
        found.append((uuid.UUID(bytes=raw), wire.decode(headers.decode()), rest[4:]))
    return found


# --- the example in plain Python ---------------------------------------------------------------------------


def test_an_order_is_priced_with_discount_shipping_and_tax():
    priced = price(order())
    # 20 pens with 5 % off are 21.09, a mug 12.90; shipping 6.90; 19 % of 40.89 are 7.77.
    assert (priced.country, priced.day, priced.cents) == ("DE", date(2025, 4, 30), 4866)
    invoice, parcel = priced.invoice, priced.parcel
    assert {name: invoice[name] for name in ("Net", "Shipping", "Tax", "Total", "Currency")} == {
        "Net": 33.99,
        "Shipping": 6.9,
        "Tax": 7.77,
        "Total": 48.66,
        "Currency": "EUR",
    }
    assert [line["Net"] for line in invoice["Lines"]] == [21.09, 12.9]
    assert parcel == {
        "OrderId": "SO-1",
        "Customer": "Zoë",
        "Country": "DE",
        "Express": False,
        "Items": [{"Sku": "PEN-BLK", "Quantity": 20}, {"Sku": "MUG-RED", "Quantity": 1}],
    }


def test_large_orders_ship_for_nothing_and_express_costs_its_own_price():
    many = [{"Sku": "LAMP", "Quantity": 2, "UnitPrice": 100}]
    assert price(order(Lines=many)).invoice["Shipping"] == 0
    assert price(order(Lines=many, Express=True)).invoice["Shipping"] == 14.5


@pytest.mark.parametrize(
    ("changes", "error_type"),
    [
        ({"Currency": "USD"}, "MessageBodyInvalid"),
        ({"Lines": []}, "MessageBodyInvalid"),
        ({"Country": "NZ"}, "CountryNotServed"),
    ],
)
def test_an_order_that_breaks_a_rule_is_refused_by_its_kind(changes, error_type):
    with pytest.raises(RefusedError) as refused:
        price(order(**changes))
    assert refused.value.error_type == error_type


# --- envelopes ---------------------------------------------------------------------------------------------


def test_a_result_is_related_to_its_message_and_has_an_id_of_its_own():
    received = order_message(order()).headers
    headers = wire.decode(Envelopes().result("billing", "an-id", relate(received)).decode())
    assert headers[wire.MESSAGE_ID] == "an-id"
    assert headers[wire.RELATED_TO] == received[wire.MESSAGE_ID]
    assert headers[wire.CONVERSATION_ID] == received[wire.CONVERSATION_ID]
    assert headers[wire.CORRELATION_ID] == received[wire.CORRELATION_ID]
    assert headers[wire.ENCLOSED_MESSAGE_TYPES] == "Shop.InvoiceRequested"
    assert headers[wire.MESSAGE_INTENT] == "Send"


def test_message_types_are_those_of_the_example():
    declared = {output.queue: output.message_type for output in ours.example().output_queues}
    for queue, message_type in declared.items():
        headers = wire.decode(Envelopes().result(queue, "an-id", relate(order_message(b"").headers)).decode())
        assert headers[wire.ENCLOSED_MESSAGE_TYPES] == message_type


def test_a_failed_message_keeps_its_headers_and_says_why():
    received = order_message(order()).headers
    headers = wire.decode(failed(received, RefusedError("CountryNotServed", "no deliveries to NZ")).decode())
    assert received.items() <= headers.items()
    assert headers[wire.FAILED_QUEUE] == "orders"
    assert headers[wire.EXCEPTION_TYPE] == "CountryNotServed"
    assert headers[wire.EXCEPTION_MESSAGE] == "no deliveries to NZ"


@pytest.mark.parametrize("text", ["<headers/>", "[]", ""])
def test_headers_that_are_no_json_object_are_refused(text):
    with pytest.raises(RefusedError):
        read_headers(text)


# --- by hand -----------------------------------------------------------------------------------------------


def test_a_handwritten_batch_has_two_results_for_each_good_order_and_an_error_for_each_bad_one():
    samples = list(make_samples(60, 0.2))
    work = Work(len(samples))
    for _, _, headers, body in copy_rows(samples):
        work.add(headers, body)
    bad = sum(sample.kind is not None for sample in samples)
    assert bad == 12
    assert {queue: len(rows) for queue, rows in work.rows.items()} == {"billing": 48, "shipping": 48, "error": bad}
    assert sum(orders for orders, _ in work.totals.values()) == 48
    rows = copied_rows(work.rows["billing"])
    assert sorted({identity for identity, _, _ in rows}) == [identity for identity, _, _ in rows]
    assert all(headers[wire.MESSAGE_ID] == str(identity) for identity, headers, _ in rows)
    cents = sum(round(json.loads(body)["Total"] * 100) for _, _, body in rows)
    assert cents == sum(cents for _, cents in work.totals.values())
    bodies = [sample.message.body for sample in samples if sample.kind is not None]
    assert [body for _, _, body in copied_rows(work.rows["error"])] == bodies


def test_the_orders_that_wait_hold_every_kind_of_bad_message_and_some_have_unreadable_headers():
    samples = list(make_samples(1_000, 0.01))
    assert {sample.kind for sample in samples} == {None, *KINDS}
    unreadable = [
        row for row, sample in zip(copy_rows(samples), samples, strict=True) if sample.kind == UNREADABLE_HEADERS
    ]
    assert unreadable
    for _, _, headers, _ in unreadable:
        with pytest.raises(RefusedError):
            read_headers(headers)


def test_what_has_to_be_there_counts_whole_repetitions_and_the_rest():
    expected = Source("source", [100, None, 250]).expected(8)
    assert (expected.invoices, expected.parcels, expected.failed) == (5, 5, 3)
    assert (expected.counted, expected.cents, expected.left) == (5, 2 * 350 + 100, 0)


# --- ours --------------------------------------------------------------------------------------------------


def test_the_example_is_measured_as_it_ships_but_does_not_linger():
    from queue_pipeline.defs.orders import orders

    assert ours.example() == orders.model_copy(update={"linger_seconds": 0.0})


def test_executors_get_at_least_two_batches():
    assert ours.by_executors(30_000).batch_messages == 15_000
    assert ours.by_executors(1_000_000).batch_messages == ours.LARGEST_EXECUTOR_BATCH


def test_a_missing_extra_is_reported_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pgqueuer" else object())
    with pytest.raises(click.ClickException, match=r"pgqueuer not installed; run scripts/bootstrap bench"):
        check_extra()
