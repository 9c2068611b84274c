"""Messages that failed, as they are written."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from queue_pipeline.processing.batch.claimed_batch import SCHEMA
from queue_pipeline.processing.declaration.recoverability import DelayedRetry
from queue_pipeline.processing.results.failed_copies import (
    MOST_TRACES,
    SHORTEST_TRACE,
    Consumer,
    failed_copies,
    ids_of,
    same_reason,
)
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.messages import headers as wire

NOW = datetime(2024, 5, 1, tzinfo=UTC)
ORDERS = Consumer("orders", "orders", "error")


def messages(count, headers=None):
    rows = [
        {"id": f"row{n}", "row_version": n, "headers": wire.encode(headers or {}), "body": b"x", "message_id": f"m{n}"}
        for n in range(count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize("count", [1, 100, 20_000])
def test_many_messages_with_the_same_reason_do_not_each_store_its_full_text(count):
    trace = "Error: no\n" + "   at shop.price() in /shop.py:line 7\n" * 20_000
    kept = same_reason(messages(count), Failure("Error", "no", trace))[0]
    assert len(kept.stack_trace) <= max(SHORTEST_TRACE, MOST_TRACES // count)
    assert trace.startswith(kept.stack_trace)
    assert kept.stack_trace.splitlines()[-1] == "   at shop.price() in /shop.py:line 7"


def test_a_short_text_is_kept_whole():
    failure = Failure("Error", "no", "Error: no")
    assert list(same_reason(messages(5_000), failure).values()) == [failure] * 5_000


def test_each_message_goes_where_its_retries_say():
    table = messages(3)
    again = DelayedRetry(1, timedelta(seconds=10))
    asked = iter([None, again, None])
    copies = failed_copies(ORDERS, "orders", table, same_reason(table, Failure("E", "no")), NOW, lambda _: next(asked))
    errors, later = copies.ready
    assert (errors.destination, errors.delayed, errors.ids) == ("error", False, ["m0", "m2"])
    assert (later.destination, later.delayed, later.ids, later.milliseconds) == ("orders", True, ["m1"], [10_000])
    assert wire.decode(later.headers[0])[wire.MESSAGE_ID] == "m1"
    assert (ids_of(copies.failed), copies.delayed) == (["m0", "m2"], 1)


def test_the_forwarding_header_of_the_first_hop_is_gone():
    table = messages(1, {wire.FORWARD_DESTINATION: "elsewhere"})
    (errors,) = failed_copies(ORDERS, "orders", table, same_reason(table, Failure("E", "no")), NOW).ready
    assert wire.FORWARD_DESTINATION not in wire.decode(errors.headers[0])
