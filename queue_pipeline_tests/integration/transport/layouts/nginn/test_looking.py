"""Looking at a queue without taking anything: peek, show, status and figures."""

import pytest

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.layouts.nginn.queue import NGinnFigures, require_nginn
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, SENDER, body_of, number_of, placed


def test_a_peek_counts_only_what_is_ready_and_stops_at_its_limit(bus):
    for subqueue in "IRXFII":
        bus.insert(body_of(1), subqueue=subqueue)
    assert bus.transport.peek(ORDERS) == 3
    assert bus.transport.peek(ORDERS, 2) == 2
    assert bus.transport.peek(BILLING) == 0


def test_messages_are_shown_in_due_order_and_stay(bus):
    bus.insert(body_of(1), retry_time=-60)
    bus.insert(body_of(2), retry_time=-120, msg_headers="tenant=7", unique_id="abc2")
    bus.insert(body_of(3), subqueue="R")
    before = bus.rows()
    first, second = bus.transport.show(ORDERS)
    assert [number_of(one.body) for one in (first, second)] == [2, 1]
    assert (first.headers["tenant"], first.headers[wire.MESSAGE_ID]) == ("7", "abc2")
    assert (first.raw_headers, first.row_version, first.expired) == ("tenant=7", 2, False)
    assert bus.rows() == before
    assert len(bus.transport.show(ORDERS, 1)) == 1


def test_what_cannot_be_read_and_what_expired_is_shown_as_such(bus):
    bus.insert(None, retry_time=-180)
    bus.insert(body_of(1), retry_time=-120, msg_headers="a=b=c")
    bus.insert(body_of(1), retry_time=-60, msg_headers="_NG-TTL=2001-01-01 00:00:00")
    no_body, bad_headers, expired = bus.transport.show(ORDERS)
    assert (no_body.headers, no_body.body, no_body.problem) == ({}, b"", "msg_text is NULL")
    assert (bad_headers.headers, bad_headers.raw_headers) == ({}, "a=b=c")
    assert (expired.expired, expired.headers[wire.NGINN_TIME_TO_LIVE]) == (True, "2001-01-01 00:00:00")


def test_a_message_for_another_queue_is_shown_like_any_other(bus):
    bus.insert(body_of(1), to_endpoint=BILLING)
    (shown,) = bus.transport.show(ORDERS)
    assert number_of(shown.body) == 1


def test_the_status_counts_what_is_ready_scheduled_in_work_processed_and_failed(bus):
    for subqueue in "IIXXXF":
        bus.insert(body_of(1), subqueue=subqueue, retry_time=-10)
    bus.insert(body_of(1), subqueue="R", retry_time=100)
    bus.insert(body_of(1), retry_time=-20)
    bus.transport.claim(ORDERS, "me", 1)
    (status,) = bus.transport.status(ORDERS)
    assert (status.queue, status.pending, status.delayed, status.processed, status.failed) == (ORDERS, 2, 1, 3, 1)
    assert (status.claims, status.claimed, status.abandoned_claims) == (1, 1, 0)
    assert status.oldest_seconds == pytest.approx(10, abs=5)
    assert status.next_due_seconds == pytest.approx(100, abs=5)
    assert not status.capped


def test_the_status_of_an_empty_queue_is_all_zero(bus):
    (status,) = bus.transport.status(ORDERS)
    assert (status.pending, status.delayed, status.processed, status.failed, status.claims) == (0, 0, 0, 0, 0)
    assert (status.oldest_seconds, status.next_due_seconds, status.latency_milliseconds) == (None, None, None)


def test_the_status_counts_claims_without_a_holder(bus):
    bus.send(2)
    bus.transport.claims.release(bus.transport.claim(ORDERS, "me", 1))
    (status,) = bus.transport.status(ORDERS)
    assert (status.pending, status.claims, status.claimed, status.abandoned_claims) == (1, 1, 1, 1)
    assert bus.transport.claims.waiting() == {ORDERS: 1}


def test_the_status_of_everything_includes_both_kinds_of_queues(bus):
    bus.transport.install("plain")
    names = [status.queue for status in bus.transport.status()]
    assert set(names) >= {ORDERS, BILLING, SENDER}
    assert len([name for name in names if "plain" in name]) == 1
    assert len(names) == len(set(names))


def test_a_table_that_no_endpoint_can_name_is_passed_over(bus, orders):
    """Somebody's copy of a queue must not stop the status of all others."""
    dialect = bus.transport.database.dialect
    copy = bus.transport.resolve(QueueAddress("Orders of last year"))
    names = {"subqueue_index": dialect.quote("IDX_copy"), "key_index": dialect.quote("PK_copy")}
    for statement in dialect.split_script(dialect.statement("nginn/schema.create_queue", queue=copy, **names).script):
        bus.backend.sql(bus.transport, statement)
    found = bus.transport.queues()
    assert orders in found
    assert copy.table not in [table.table for table in found]


def test_without_an_alias_no_table_is_known_as_an_nginn_queue(bus):
    unnamed = bus.other(aliases=(), endpoint=None).transport.queues()
    assert [table for table in unnamed if table.layout == "nginn"] == []


def test_messages_are_counted_by_subqueue(bus, orders):
    for subqueue in "IIRXXXF":
        bus.insert(body_of(1), subqueue=subqueue)
    figures = bus.transport.nginn.figures(orders)
    assert (figures.ready, figures.scheduled, figures.processed, figures.failed) == (2, 1, 3, 1)


def test_the_figures_of_an_empty_queue_are_zero(bus, orders):
    assert bus.transport.nginn.figures(orders) == NGinnFigures(0, 0, 0, 0, None)


def test_the_latency_is_the_average_from_due_to_processed_over_the_last_minutes(bus, orders):
    table = bus.table(ORDERS)
    for due, processed in ((-60, -50), (-60, -40), (-600, 0)):
        row = bus.insert(body_of(1), subqueue="X")
        bus.set_due(due, row)
        bus.execute(f"UPDATE {table} SET last_processed = {bus.moment(processed)} WHERE id = ?", (row,))
    bus.insert(body_of(1), subqueue="F", retry_time=-100)
    nginn = bus.transport.nginn
    assert nginn.figures(orders).latency_milliseconds == pytest.approx(15_000, abs=1_000)
    assert nginn.figures(orders, minutes=60).latency_milliseconds == pytest.approx(210_000, abs=2_000)
    with pytest.raises(ConfigurationError, match=r"at least one"):
        nginn.figures(orders, minutes=0)


def test_the_latency_of_a_claim_is_counted_from_the_time_at_which_it_was_due(bus, orders):
    bus.insert(body_of(1), retry_time=-30)
    bus.transport.claims.complete(Completion(bus.transport.claim(ORDERS, "me", 1), read=None))
    assert bus.transport.nginn.figures(orders).latency_milliseconds == pytest.approx(30_000, abs=5_000)


def test_the_next_due_message_is_not_one_in_work(bus, orders):
    assert bus.transport.next_due_seconds(orders) is None
    bus.send(1)
    bus.transport.claim(ORDERS, "me", 1)
    assert bus.transport.next_due_seconds(orders) is None
    bus.insert(body_of(1), subqueue="R", retry_time=-7)
    assert bus.transport.next_due_seconds(orders) == pytest.approx(-7, abs=5)


def test_a_queue_of_the_other_kind_is_refused_where_only_nginn_ones_make_sense(bus):
    bus.transport.send(ORDERS, placed(1))
    assert require_nginn(bus.transport.resolve(ORDERS)).canonical == ORDERS
    with pytest.raises(ConfigurationError, match=r"name it as sql://alias/Queue"):
        require_nginn(bus.transport.resolve("plain"))
