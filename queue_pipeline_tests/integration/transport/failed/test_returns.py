"""Failed messages that cannot easily go back, or not at all: they stay, are reported, and block no other message."""

import pytest

from queue_pipeline.transport import OutgoingMessage
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.failed.returns import MOST_NAMED
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.failed import ALL, bodies, fail, failure, raw, waiting


@pytest.fixture
def failed(transport):
    return transport.failed


# --- what cannot go back -----------------------------------------------------------------------------------

HOSTILE = "x]; DROP TABLE y;--"


@pytest.mark.parametrize(
    "address", [HOSTILE, 'x"; DROP TABLE "y', "x'; DROP TABLE y --", "{queue} ?", "$(reboot);`id`"]
)
def test_a_message_for_an_address_that_is_no_queue_stays_and_blocks_no_other(transport, failed, address):
    transport.install("y")
    transport.send("error", OutgoingMessage(b"1", {wire.MESSAGE_ID: "bad", wire.FAILED_QUEUE: address}))
    fail(transport, failure(transport, body=b"2"))
    result = failed.retry("error", ALL)
    assert (result.returned, result.skipped) == (1, 1)
    (stays,) = result.named
    assert (stays.message_id, stays.failed_queue) == ("bad", address)
    assert "does not exist; create it with: queue-pipeline install '" in stays.reason
    assert "--to" in stays.reason
    assert (bodies(transport, "error"), bodies(transport, "y")) == ([b"1"], [])


def test_a_queue_of_a_hostile_name_gets_its_messages(transport, failed, backend):
    if backend.is_babelfish:
        pytest.skip("needs ]] in names, which Babelfish cannot parse")
    transport.install(HOSTILE)
    fail(transport, failure(transport, HOSTILE, b"1"))
    assert failed.retry("error", Selection(failed_queue=HOSTILE)).returned == 1
    assert bodies(transport, HOSTILE) == [b"1"]


@pytest.mark.parametrize(
    ("headers", "reported"),
    [
        ({}, "no header says in which queue it failed"),
        ({wire.FAILED_QUEUE: ""}, "no header says in which queue it failed"),
        ({wire.FAILED_QUEUE: "   "}, "a queue address is empty"),
        ({wire.FAILED_QUEUE: "a\nb"}, "control character"),
        ({wire.FAILED_QUEUE: "error"}, "failed in the error queue itself"),
        ({wire.FAILED_QUEUE: "nowhere"}, "does not exist"),
    ],
)
def test_what_cannot_go_back_is_reported_with_the_next_step(transport, failed, headers, reported):
    fail(transport, OutgoingMessage(b"", {wire.MESSAGE_ID: "stays", **headers}), failure(transport))
    result = failed.retry("error", ALL)
    assert (result.returned, result.skipped, result.done) == (1, 1, 2)
    (stays,) = result.named
    assert stays.message_id == "stays"
    assert reported in stays.reason
    assert "--to" in stays.reason
    assert [each.message_id for each in failed.list("error")] == ["stays"]


def test_a_table_that_is_no_queue_blocks_no_other_message(transport, failed):
    claims = transport.book.own("QueueClaims").canonical
    fail(transport, failure(transport, body=b"1"))
    transport.send("error", [OutgoingMessage(str(n).encode(), {wire.FAILED_QUEUE: claims}) for n in (2, 3)])
    fail(transport, failure(transport, body=b"4"))
    result = failed.retry("error", ALL, batch=3)
    assert (result.returned, result.skipped) == (2, 2)
    assert all("--to" in each.reason for each in result.named)
    assert (bodies(transport), bodies(transport, "error")) == ([b"1", b"4"], [b"2", b"3"])
    assert transport.claims.list() == []


def test_the_first_of_many_messages_that_stay_are_named_and_all_are_counted(transport, failed):
    transport.send("error", [OutgoingMessage(b"", {"n": str(n)}) for n in range(MOST_NAMED + 50)])
    result = failed.retry("error", ALL)
    assert (result.skipped, len(result.named), result.returned) == (MOST_NAMED + 50, MOST_NAMED, 0)


def test_a_row_whose_headers_cannot_be_read_is_listed_and_stays_unless_a_destination_is_named(transport, failed):
    transport.install("repair")
    row_id = raw(transport, "no JSON: Zoë ☃", b"\x00raw")
    fail(transport, failure(transport))
    listed = failed.list("error")
    assert [each.problem is None for each in listed] == [False, True]
    assert (listed[0].id, listed[0].raw_headers, listed[0].body_size) == (row_id, "no JSON: Zoë ☃", 4)
    assert failed.find("error", row_id).body == b"\x00raw"
    result = failed.retry("error", ALL)
    assert (result.returned, result.skipped) == (1, 1)
    assert "its headers cannot be read (" in result.named[0].reason
    assert failed.retry("error", Selection(ids=[row_id]), to="repair").returned == 1
    (moved,) = waiting(transport, "repair")
    assert (moved.id, moved.raw_headers, moved.body) == (row_id, "no JSON: Zoë ☃", b"\x00raw")
    assert transport.peek("error") == 0


def test_a_row_that_was_dead_lettered_can_be_discarded(transport, failed):
    row_id = raw(transport, "null", queue="orders")
    with transport.receive("orders") as batch:
        assert batch.poisoned == 1
    assert [each.id for each in failed.list("error")] == [row_id]
    assert failed.discard("error", Selection(ids=[row_id])) == 1
    assert transport.peek("error") == 0


# --- addresses ---------------------------------------------------------------------------------------------


def test_a_queue_of_another_schema_is_found_by_its_full_address(postgresql):
    here = postgresql.transport()
    here.install("orders")
    postgresql.sql(here, f'CREATE SCHEMA "{postgresql.schema} sales"')
    there = postgresql.transport(schema=f"{postgresql.schema} sales")
    there.install("orders", '"Shop.Orders"')
    address = f'"{postgresql.schema} sales"."orders"'
    dotted = f'"{postgresql.schema} sales"."Shop.Orders"'
    plain = ["orders", f"{postgresql.schema}.orders", '"orders"']
    here.send("error", [OutgoingMessage(b"", {wire.FAILED_QUEUE: each}) for each in (address, dotted, *plain)])
    assert here.failed.count("error", Selection(failed_queue="orders")) == 3
    assert here.failed.count("error", Selection(failed_queue=address)) == 1
    assert here.failed.retry("error", ALL).returned == 5
    assert (there.peek("orders"), there.peek('"Shop.Orders"'), here.peek("orders")) == (1, 1, 3)


def test_a_queue_is_found_by_an_address_of_sqlserver(sqlserver):
    here = sqlserver.transport()
    here.install("orders")
    catalog, schema = here.database.catalog, sqlserver.schema
    forms = [
        "orders",
        f"orders@{schema}",
        f"orders@[{schema}]",
        f"orders@[{schema}]@[{catalog}]",
        f"orders@[]@[{catalog}]",
    ]
    here.send("error", [OutgoingMessage(b"", {wire.FAILED_QUEUE: each}) for each in forms])
    here.send("error", OutgoingMessage(b"", {wire.FAILED_QUEUE: f"orders@[nowhere]@[{catalog}]"}))
    assert here.failed.count("error", Selection(failed_queue="orders")) == 5
    result = here.failed.retry("error", ALL)
    assert (result.returned, result.skipped) == (5, 1)


def test_an_address_of_another_database_stays(transport, failed, backend):
    other = '"dbo"."orders"' if backend.name == "sqlserver" else "orders@[dbo]@[cat]"
    fail(transport, OutgoingMessage(b"", {wire.FAILED_QUEUE: other}))
    result = failed.retry("error", ALL)
    assert (result.returned, result.skipped) == (0, 1)
    assert failed.retry("error", ALL, to="orders").returned == 1
