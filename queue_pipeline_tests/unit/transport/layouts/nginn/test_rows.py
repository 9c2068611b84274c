import json
import uuid

import pytest

from queue_pipeline.errors import InvalidMessageError
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES, Row
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.layouts.nginn.rows import (
    StoredRow,
    claimed_row,
    forwarded_row,
    message_headers,
    received,
    row_id,
    unique_id,
    written,
)
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.messages import headers as wire

SETTINGS = NGinnSettings(aliases=("db",), endpoint="sql://db/Me", types={"A.B, C": "b"})
BOOK = AddressBook(DIALECTS["sqlite"], nginn=SETTINGS)
QUEUE = BOOK.resolve("sql://db/Orders")
STORED = StoredRow(7, "abc2", "sql://db/From", "sql://db/Orders", "c", "label", 0, 0, "tenant=7", '{"$type":"A.B, C"}')


def columns(headers, body=b"{}"):
    row = Row("id", NEVER_EXPIRES, wire.encode({wire.ENCLOSED_MESSAGE_TYPES: "b", **headers}), body)
    (found,) = written([row], QUEUE, SETTINGS)
    return json.loads(found.headers)


def test_a_message_becomes_a_text_of_columns_and_a_typed_body():
    row = Row("id", 5_000, wire.encode({wire.ENCLOSED_MESSAGE_TYPES: "b", "tenant": "7"}), b'{"n":1}')
    (found,) = written([row], QUEUE, SETTINGS)
    assert (found.id, found.milliseconds, found.body) == ("id", 5_000, b'{"$type":"A.B, C","n":1}')
    assert json.loads(found.headers) == {
        "from": "sql://db/Me",
        "to": "sql://db/Orders",
        "label": "A.B",
        "headers": "tenant=7",
        "expires": "|_NG-TTL=",
        "unique": "id",
    }


def test_headers_about_the_origin_of_a_message_are_kept_and_others_of_the_platform_are_not():
    found = columns({wire.CONVERSATION_ID: "v", wire.RELATED_TO: "r", wire.TIME_SENT: "t", wire.HOST_ID: "h"})
    assert found["headers"] == f"{wire.CONVERSATION_ID}=v|{wire.RELATED_TO}=r"


def test_urgency_is_asked_for_in_any_case():
    assert columns({wire.NGINN_PRIORITY: "High"})["high"] == "yes"
    assert "high" not in columns({wire.NGINN_PRIORITY: "low"})


def test_nginns_own_correlation_wins():
    assert columns({wire.CORRELATION_ID: "theirs", wire.NGINN_CORRELATION_ID: "ours"})["correlation"] == "ours"


def test_an_error_names_the_message_and_where_it_was_for():
    with pytest.raises(InvalidMessageError, match=r"message m-1 for sql://db/Orders: its correlation id"):
        columns({wire.MESSAGE_ID: "m-1", wire.NGINN_CORRELATION_ID: "c" * 101})


@pytest.mark.parametrize("name", [wire.MESSAGE_ID, wire.RELATED_TO])
def test_an_id_of_the_message_or_of_the_one_it_came_from_correlates_nothing(name):
    """A saga of NGinn's fails on an id that it does not know."""
    assert "correlation" not in columns({name: "m-1", wire.CORRELATION_ID: "m-1"})
    assert columns({name: "m-1", wire.CORRELATION_ID: "the order"})["correlation"] == "the order"


@pytest.mark.parametrize("identity", ["c" * 120, "é"])
def test_a_foreign_correlation_id_that_does_not_fit_always_becomes_the_same_guid(identity):
    found = columns({wire.CORRELATION_ID: identity})["correlation"]
    assert uuid.UUID(found).hex == found == columns({wire.CORRELATION_ID: identity})["correlation"]


@pytest.mark.parametrize("identity", ["dGVzdA==", "a|b", "é"])
def test_ids_of_another_system_that_no_header_takes_are_left_out(identity):
    found = columns({wire.CONVERSATION_ID: identity, wire.RELATED_TO: identity, "tenant": "7"})
    assert found["headers"] == "tenant=7"
    assert columns({wire.MESSAGE_ID: "=" * 40, wire.CORRELATION_ID: "a=b"})["correlation"] == "a=b"


@pytest.mark.parametrize(
    ("message_id", "expected"),
    [
        ("0190A5D8-0000-7000-8000-0123456789AB", "0190a5d8000070008000" + "0123456789ab"),
        ("0123456789abcdef0123456789abcdef2", "0123456789abcdef0123456789abcdef2"),
        ("short", "short"),
        ("x" * 40, "x" * 40),
    ],
)
def test_an_id_that_fits_is_kept(message_id, expected):
    assert unique_id(message_id) == expected


@pytest.mark.parametrize("message_id", ["x" * 41, "é"])
def test_an_id_that_does_not_fit_becomes_a_guid(message_id):
    assert uuid.UUID(unique_id(message_id)).hex == unique_id(message_id) == unique_id(message_id)


def test_a_row_has_an_id_of_its_own_in_every_queue():
    ids = {
        row_id("sql://db/Orders", STORED),
        row_id("sql://db/Billing", STORED),
        row_id("sql://db/Orders", STORED._replace(id=8)),
        row_id("sql://db/Orders", STORED._replace(unique_id=None)),
    }
    assert len(ids) == 4


def test_a_stored_row_becomes_a_message():
    message = received("sql://db/Orders", STORED, SETTINGS)
    assert (message.row_version, message.message_id, message.body) == (7, "abc2", b'{"$type":"A.B, C"}')
    assert message.headers[wire.ENCLOSED_MESSAGE_TYPES] == "b"
    assert message.headers["tenant"] == "7"
    assert message.headers[wire.TIME_SENT] == "1970-01-01 00:00:00:000000 Z"


def test_columns_win_over_headers_of_the_same_meaning():
    headers = message_headers("q", STORED._replace(headers="_NG-Label=other|_NG_RetryCount=9"), SETTINGS)
    assert (headers[wire.NGINN_LABEL], headers[wire.NGINN_RETRY_COUNT]) == ("label", "0")


@pytest.mark.parametrize("row", [STORED._replace(text=None), STORED._replace(headers="a=b=c")])
def test_an_unreadable_row_is_no_message_but_a_marked_line_of_its_claim(row):
    with pytest.raises(ValueError):
        received("sql://db/Orders", row, SETTINGS)
    found = claimed_row("sql://db/Orders", row, SETTINGS)
    assert found[1] == 7
    assert found[2].startswith(wire.UNREADABLE)
    with pytest.raises(ValueError):
        wire.decode(found[2])


def test_a_row_that_is_sent_on_keeps_all_but_its_id_times_and_count():
    found = forwarded_row(STORED._replace(text='{"n":"é"}', to_endpoint="sql://db/Billing"))
    assert json.loads(found.headers) == {
        "from": "sql://db/From",
        "to": "sql://db/Billing",
        "correlation": "c",
        "label": "label",
        "headers": "tenant=7",
        "expires": "|_NG-TTL=",
        "unique": "abc2",
    }
    assert (found.body, found.milliseconds) == (b'{"n":"\\u00e9"}', NEVER_EXPIRES)


def test_only_endpoints_are_nginn_queues():
    assert QUEUE.layout == "nginn"
    assert BOOK.resolve("orders").layout == "nservicebus"
