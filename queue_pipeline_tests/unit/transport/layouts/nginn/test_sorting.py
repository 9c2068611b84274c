from datetime import datetime, timedelta

import pytest

from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.layouts.nginn.sorting import RowSummary, sort_rows
from queue_pipeline.transport.layouts.nginn.subscriptions import control_type

NOW = datetime(2026, 1, 2, 3, 4, 5, 600_000)
PING = f'{{"$type":"{control_type("Ping")}"}}'


@pytest.fixture
def book():
    return AddressBook(DIALECTS["sqlite"], nginn=NGinnSettings(aliases=("db",)))


@pytest.fixture
def sort(book):
    def sort(text="{}", headers="", endpoint="sql://db/Orders", now=NOW):
        found = sort_rows([RowSummary(1, endpoint, headers, text, now)], book.resolve("sql://db/Orders"), book)
        (kind,) = (name for name in ("kept", "expired", "refused", "foreign", "control") if getattr(found, name))
        return kind

    return sort


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({}, "kept"),
        ({"text": ""}, "kept"),
        ({"headers": None}, "kept"),
        ({"text": None}, "refused"),
        ({"headers": "a=b=c"}, "refused"),
        ({"endpoint": "sql://db/Other"}, "foreign"),
        ({"endpoint": "http://server"}, "foreign"),
        ({"endpoint": ""}, "kept"),
        ({"endpoint": " sql://db/Orders "}, "kept"),
        ({"text": PING}, "control"),
        ({"text": PING, "endpoint": "sql://db/Other"}, "foreign"),
        ({"text": PING, "headers": "_NG-TTL=2001-01-01 00:00:00"}, "expired"),
        ({"headers": "_NG-TTL=2001-01-01 00:00:00", "endpoint": "sql://db/Other"}, "expired"),
        ({"headers": "_NG-TTL=2001-01-01 00:00:00|bad"}, "refused"),
    ],
)
def test_the_kind_of_a_row_follows_from_its_columns(sort, row, kind):
    assert sort(**row) == kind


@pytest.mark.parametrize(
    ("ttl", "kind"),
    [
        ("2026-01-02 03:04:05", "expired"),
        ("2026-01-02 03:04:06", "kept"),
        ("2026-01-02", "kept"),
        ("soon", "kept"),
        ("", "kept"),
    ],
)
@pytest.mark.parametrize("now", [NOW, NOW.isoformat(" ")], ids=["time", "text"])
def test_a_message_expires_by_the_clock_of_the_database(sort, ttl, kind, now):
    assert sort(headers=f"_NG-TTL={ttl}", now=now) == kind


def test_only_kept_messages_belong_to_a_sequence(book):
    headers = "_NG-Seq=s|_NG-SeqNum=0"
    rows = [
        RowSummary(1, "", headers, "{}", NOW),
        RowSummary(2, "sql://db/Other", headers, "{}", NOW),
        RowSummary(3, "", f"{headers}|_NG-TTL=2001-01-01 00:00:00", "{}", NOW + timedelta(1)),
        RowSummary(4, "", "_NG-SeqNum=0", "{}", NOW),
    ]
    found = sort_rows(rows, book.resolve("sql://db/Orders"), book)
    assert found.kept == [1, 4]
    assert list(found.in_sequence) == [1]


def test_an_error_says_that_others_would_stop_here(book):
    found = sort_rows([RowSummary(7, "", "", None, NOW)], book.resolve("sql://db/Orders"), book)
    assert found.refused == [(7, "unreadable: msg_text is NULL; the .NET reader would stop at this message")]
