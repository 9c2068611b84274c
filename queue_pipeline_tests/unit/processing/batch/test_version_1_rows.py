"""Rows of version 1 keep CorrelationId and ReplyToAddress in columns: no copy of such a message loses them."""

from datetime import UTC, datetime, timedelta

import pytest

from queue_pipeline.processing.batch.claimed_batch import prepare
from queue_pipeline.processing.declaration.recoverability import DelayedRetry
from queue_pipeline.processing.results.confirmations import Confirming, confirmations
from queue_pipeline.processing.results.failed_copies import Consumer, failed_copies, same_reason
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.claims.message_table import from_rows
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.messages import headers as wire

NOW = datetime(2024, 5, 1, tzinfo=UTC)
ORDERS = Consumer("orders", "orders", "error")


def read(text, correlation_id="c1", reply_to="shop"):
    rows = [("ID1", 1, text, b"x", correlation_id, reply_to), ("ID2", 2, "{}", b"y", None, None)]
    return prepare(from_rows(rows))


def names(text):
    headers = wire.decode(text)
    return headers.get(wire.CORRELATION_ID), headers.get(wire.REPLY_TO_ADDRESS)


def copies(messages, retry=lambda _: None):
    return failed_copies(ORDERS, "orders", messages, same_reason(messages, Failure("E", "no")), NOW, retry).ready[0]


@pytest.mark.parametrize("text", ["{}", '{"NServiceBus.CorrelationId":"","n":"1"}', '{"n":"1"}'])
def test_every_copy_of_a_message_has_what_its_columns_held(text):
    messages, unreadable = read(text)
    assert unreadable == []
    again = DelayedRetry(1, timedelta(seconds=10))
    for made in (
        copies(messages),
        copies(messages, lambda _: again),
        *confirmations(messages, Confirming("orders", NOW, NOW, "audit")),
    ):
        assert [names(headers) for headers in made.headers] == [("c1", "shop"), (None, None)]


def test_headers_win_over_columns():
    messages, _ = read(wire.encode({wire.CORRELATION_ID: "c2"}))
    assert [names(text) for text in messages["headers"].to_pylist()] == [("c2", "shop"), (None, None)]


@pytest.mark.parametrize("columns", [frozenset(), frozenset({"correlationid", "replytoaddress", "recoverable"})])
def test_messages_given_back_have_their_columns_again_where_the_table_has_them(columns):
    dialect = DIALECTS["sqlserver"]
    queue = AddressBook(dialect, "dbo").resolve("orders")
    names = dialect.optional_columns(columns)
    text = dialect.statement("nservicebus/claim_messages.return", queue=queue, claimed=queue, **names).text
    insert, _, inner = text.partition("FROM (")
    assert ("[CorrelationId], [ReplyToAddress]" in insert) is bool(columns)
    assert "CorrelationId, ReplyToAddress" in inner


def test_headers_that_cannot_be_read_stay_unchanged():
    part = from_rows([("ID1", 1, "no headers", b"x", "c1", "shop")])
    assert part["headers"].to_pylist() == ["no headers"]
    assert len(prepare(part)[1]) == 1
