"""Browsing takes nothing, and gives the same messages as objects, as Arrow and as pandas."""

from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from queue_pipeline.errors import ConfigurationError, QueueNotFoundError
from queue_pipeline.processing.body.parse import body_parser
from queue_pipeline.transport import new_message
from queue_pipeline.transport.failed.failed_message import Group, Selection
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.failed import NOON, fail, failure, raw

ORDERS = "sql://shop/BusOrders"


class Order(BaseModel):
    OrderId: str
    Pieces: int


@pytest.fixture
def shop(backend):
    """A queue of each layout, with the same three orders in it."""
    transport = backend.transport(nginn=NGinnSettings(aliases=("shop",), endpoint="sql://shop/Web"))
    transport.install("orders", ORDERS)
    for queue in ("orders", ORDERS):
        transport.send(queue, [order(n) for n in (1, 2, 3)])
    return transport


def order(n):
    body = Order(OrderId=f"o{n}", Pieces=n).model_dump_json()
    return new_message(body, message_type="Shop.Order, Shop", headers={"Shop.Tenant": f"t{n}"})


both_layouts = pytest.mark.parametrize("queue", ["orders", ORDERS], ids=["nservicebus", "nginn"])


@both_layouts
def test_messages_are_shown_and_stay(shop, queue):
    browsed = shop.browse(queue, limit=2)
    assert [one.headers["Shop.Tenant"] for one in browsed] == ["t1", "t2"]
    assert [body_parser("OrderId string").parse(browsed.to_arrow()["body"]).payload.to_pylist()] == [
        [{"OrderId": "o1"}, {"OrderId": "o2"}]
    ]
    assert (len(shop.browse(queue)), shop.peek(queue)) == (3, 3)


@both_layouts
def test_a_table_has_a_row_per_message_with_typed_bodies_and_headers(shop, queue):
    frame = shop.browse(queue).to_pandas(headers=["Shop.Tenant"], body=body_parser(Order))
    assert frame[["payload.OrderId", "payload.Pieces", "Shop.Tenant"]].to_dict("list") == {
        "payload.OrderId": ["o1", "o2", "o3"],
        "payload.Pieces": [1, 2, 3],
        "Shop.Tenant": ["t1", "t2", "t3"],
    }
    assert list(frame["row_version"]) == sorted(frame["row_version"])
    assert (datetime.now(UTC) - frame["sent"].max()).total_seconds() < 3600
    assert list(frame["problem"]) == [None] * 3


def test_every_header_becomes_a_column_on_request(shop):
    table = shop.browse("orders").to_arrow(headers=True)
    assert table["Shop.Tenant"].to_pylist() == ["t1", "t2", "t3"]
    assert table[wire.CONTENT_TYPE].to_pylist() == ["application/json"] * 3


def test_more_messages_than_a_page_come_in_order(shop):
    shop.send("orders", [order(n) for n in range(4, 451)])
    assert [one.headers["Shop.Tenant"] for one in shop.browse("orders", limit=None)] == [f"t{n}" for n in range(1, 451)]


def test_a_body_that_does_not_fit_and_headers_that_cannot_be_read_are_named(transport):
    transport.send("orders", [new_message('{"OrderId": "o1", "Pieces": 1}'), new_message('{"OrderId": "o2"}')])
    raw(transport, "no JSON", b"{}", "orders")
    table = transport.browse("orders").to_arrow(body=body_parser(Order))
    assert table["payload"].to_pylist() == [{"OrderId": "o1", "Pieces": 1}, None, None]
    fitting, missing, unreadable = table["problem"].to_pylist()
    assert (fitting, missing) == (None, "Pieces: Field required")
    assert unreadable.startswith("OrderId: Field required")
    assert "Expecting value" in transport.browse("orders")[2].problem
    assert table["body"].to_pylist()[1] == b'{"OrderId": "o2"}'


def test_failed_messages_have_their_reasons_and_are_grouped_by_cause(transport):
    fail(transport, *(failure(transport, body=b"%d" % n) for n in range(3)))
    fail(transport, failure(transport, kind="Shop.LateError"))
    raw(transport, "no JSON")
    failed = transport.browse_failed()
    frame = failed.to_pandas()
    assert list(frame["exception_type"]) == ["Shop.NoStockError"] * 3 + ["Shop.LateError", None]
    assert list(frame["exception_message"])[:1] == ["nothing left"]
    assert frame["time_of_failure"][0].to_pydatetime() == NOON
    here, kind = transport.resolve("orders").canonical, "Shop.OrderPlaced, Shop, Version=1.0.0.0"
    assert {cause: len(messages) for cause, messages in failed.by_cause().items()} == {
        Group(kind, "Shop.NoStockError", here): 3,
        Group(kind, "Shop.LateError", here): 1,
        Group(None, None, None): 1,
    }
    assert dict(transport.failed.count_by("error").counts) == {
        cause: len(messages) for cause, messages in failed.by_cause().items()
    }
    chosen = transport.browse_failed("error", Selection(exception="LateError"))
    assert [one.exception_type for one in chosen] == ["Shop.LateError"]
    assert transport.peek("error") == 5


def test_failed_messages_of_an_nginn_queue_are_those_that_it_keeps(shop, backend):
    queue = shop.resolve(ORDERS).qualified
    error = "System.InvalidOperationException: no price\n   at Shop.Prices.Find()"
    backend.sql(shop, f"UPDATE {queue} SET subqueue = 'F', error_info = ? WHERE label LIKE 'Shop%'", (error,))
    failed = shop.browse_failed(ORDERS)
    assert len(shop.browse(ORDERS)) == 0
    assert [(one.exception_type, one.exception_message, one.headers["Shop.Tenant"]) for one in failed] == [
        ("System.InvalidOperationException", "no price", f"t{n}") for n in (1, 2, 3)
    ]
    assert failed[0].stack_trace.endswith("at Shop.Prices.Find()")
    assert failed.to_pandas(body=body_parser(Order))["payload.Pieces"].tolist() == [1, 2, 3]


def test_a_queue_without_messages_gives_a_table_without_rows(transport):
    frame = transport.browse("orders").to_pandas(body=body_parser(Order), headers=True)
    assert (len(frame), "payload.OrderId" in frame.columns) == (0, True)


def test_what_cannot_be_browsed_is_refused(transport):
    with pytest.raises(QueueNotFoundError):
        transport.browse("nowhere")
    with pytest.raises(ConfigurationError, match="0 messages to browse; ask for at least one, or None for all"):
        transport.browse("orders", limit=0)
