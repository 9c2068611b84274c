"""Results that come as columns, and unreadable messages, in the transaction that completes a claim."""

from datetime import timedelta

import pytest

from queue_pipeline.errors import (
    ClaimLostError,
    InvalidMessageError,
    QueueNotFoundError,
    TransientDatabaseError,
)
from queue_pipeline.transport import MessageColumns, Operation, OutgoingMessage, new_message
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.backends import run_sql

HOUR = 3_600_000


@pytest.fixture
def orders(transport):
    return transport.resolve("orders")


def claim_some(transport, count=3):
    transport.send("orders", [OutgoingMessage(str(n).encode(), {"n": str(n)}) for n in range(count)])
    return transport.claim("orders", "me", count)


def ready(destination, messages, *, forward_to=None):
    """What a caller makes of messages that it has as columns."""
    extra = {wire.FORWARD_DESTINATION: forward_to} if forward_to else {}
    first = messages[0]
    if first.delay is not None:
        times = [message.delay // timedelta(milliseconds=1) for message in messages]
    else:
        times = [
            NEVER_EXPIRES
            if message.time_to_be_received is None
            else message.time_to_be_received // timedelta(milliseconds=1)
            for message in messages
        ]
    return MessageColumns(
        destination,
        first.delay is not None,
        [message.headers.get(wire.MESSAGE_ID, "") for message in messages],
        times,
        [wire.encode({**message.headers, **extra}) for message in messages],
        [message.body for message in messages],
    )


def stored(transport, backend, table, moment):
    """Headers, body and the seconds until the moment in a column, of every row in the order of insertion."""
    seconds = {
        "sqlite": f"CAST(round((julianday({moment}) - julianday('now')) * 86400) AS INTEGER)",
        "postgresql": f"round(extract(EPOCH FROM {moment} - CAST(now() AT TIME ZONE 'UTC' AS timestamp)))"
        if moment == "expires"
        else f"round(extract(EPOCH FROM {moment} - now()))",
        "sqlserver": f"DATEDIFF(second, GETUTCDATE(), {moment})",
    }[backend.name]
    order = {"sqlite": "rowid", "sqlserver": "RowVersion"}.get(backend.name, "seq" if moment == "expires" else "id")
    rows = backend.sql(transport, f"SELECT headers, body, {seconds} FROM {table.qualified} ORDER BY {order}")
    return [(headers, bytes(body), None if time is None else int(time)) for headers, body, time in rows]


def assert_alike(left, right):
    assert [row[:2] for row in left] == [row[:2] for row in right]
    for (_, _, one), (_, _, other) in zip(left, right, strict=True):
        assert (one is None) is (other is None)
        assert one is None or abs(one - other) <= 30


MESSAGES = [
    new_message('{"id": 1}', message_type="Shop.OrderPlaced", headers={"note": 'grüße / "quoted" \\ 😀 \n'}),
    new_message("", time_to_be_received=timedelta(hours=1)),
    new_message(bytes(range(256)), time_to_be_received=timedelta(days=24)),
    OutgoingMessage(b"no headers"),
]
DELAYED = [new_message(str(n), delay=timedelta(seconds=seconds)) for n, seconds in enumerate([3600, -3600, 10**8, 0])]


def test_ready_messages_are_stored_as_messages_are(transport, backend):
    transport.install("plain", "columns")
    transport.send("plain", MESSAGES)
    assert transport.dispatch_columns([ready("columns", MESSAGES)]) == 4
    rows = stored(transport, backend, transport.resolve("columns"), "expires")
    assert_alike(rows, stored(transport, backend, transport.resolve("plain"), "expires"))
    assert [row[2] is None for row in rows] == [True, False, False, True]


def test_delayed_ready_messages_wait_as_delayed_messages_do(transport, backend):
    transport.install("plain", "columns")
    transport.send("plain", DELAYED)
    forward_to = transport.resolve("plain").canonical
    assert transport.dispatch_columns([ready("columns", DELAYED, forward_to=forward_to)]) == 4
    plain, columns = (transport.book.sibling(transport.resolve(name), "Delayed") for name in ("plain", "columns"))
    assert_alike(stored(transport, backend, columns, "due"), stored(transport, backend, plain, "due"))
    assert transport.peek("columns") == 0


def test_a_delayed_ready_message_arrives_where_it_is_for(backend):
    """The endpoint's own delayed table takes it; the mover puts it into the endpoint's queue, which sends it on."""
    transport = backend.transport(endpoint="orders")
    transport.install("orders", "billing")
    late = [new_message("late", delay=timedelta(seconds=-1))]
    transport.dispatch_columns([ready("billing", late, forward_to=transport.resolve("billing").canonical)])
    assert transport.move_due(transport.resolve("orders")) == 1
    assert transport.claim("orders", "me", 10) is None
    (shown,) = transport.show("billing")
    assert shown.body == b"late" and wire.FORWARD_DESTINATION not in shown.headers


def test_a_completion_writes_messages_and_columns_together(transport, orders):
    transport.install("billing")
    claim = claim_some(transport)
    columns = [ready("billing", MESSAGES[:2]), ready(transport.resolve("orders"), MESSAGES[2:])]
    assert (
        transport.claims.complete(
            Completion(claim, [Operation("billing", new_message("object"))], sends=columns, read=None)
        )
        == 5
    )
    assert [shown.body for shown in transport.show("billing")] == [b"object", b'{"id": 1}', b""]
    assert [shown.body for shown in transport.show("orders")] == [bytes(range(256)), b"no headers"]
    assert transport.claims.list() == []


def test_a_zombies_columns_are_not_sent(transport):
    claim = claim_some(transport)
    transport.claims.adopt(claim, "heir")
    with pytest.raises(ClaimLostError):
        transport.claims.complete(Completion(claim, sends=[ready("orders", MESSAGES)], unreadable=[1], read=None))
    assert transport.peek("orders") == transport.peek("error") == 0


def test_a_completion_that_fails_sends_no_columns(transport):
    claim = claim_some(transport)
    with pytest.raises(QueueNotFoundError, match="nowhere"):
        transport.claims.complete(
            Completion(claim, sends=[ready("orders", MESSAGES), ready("nowhere", MESSAGES)], read=None)
        )
    assert transport.peek("orders") == 0
    assert transport.claims.complete(Completion(claim, sends=[ready("orders", MESSAGES)], read=None)) == 4


def test_a_deadlock_victim_sends_its_columns_again_from_the_first(transport):
    transport.install("billing")
    claim = claim_some(transport)
    tries = []
    many = [new_message(str(n)) for n in range(500)]
    columns = [ready("billing", many)]
    write = transport.sender.write

    def fail_once(transaction, shipments):
        sent = write(transaction, shipments)
        tries.append(sent)
        if len(tries) == 1:
            raise TransientDatabaseError("chosen as the victim")
        return sent

    transport.sender.write = fail_once
    assert transport.claims.complete(Completion(claim, sends=columns, read=None)) == 500
    assert tries == [500, 500]
    assert sorted(int(shown.body) for shown in transport.show("billing", 1000)) == list(range(500))


def test_ready_messages_go_with_a_transaction_of_the_callers(transport):
    with pytest.raises(InterruptedError), transport.transaction() as connection:
        assert transport.dispatch_columns([ready("orders", MESSAGES)], connection) == 4
        raise InterruptedError
    assert transport.peek("orders") == 0
    with transport.transaction() as connection:
        transport.dispatch_columns([ready("orders", MESSAGES)], connection)
    assert transport.peek("orders") == 4


def test_no_ready_messages_are_nothing_to_send(transport):
    assert transport.dispatch_columns([]) == 0
    assert transport.dispatch_columns([MessageColumns("orders", False, [], [], [], [])]) == 0
    claim = claim_some(transport)
    assert (
        transport.claims.complete(Completion(claim, sends=[MessageColumns("orders", True, [], [], [], [])], read=None))
        == 0
    )


def test_a_header_column_that_loses_characters_gets_escapes(sqlserver):
    transport = sqlserver.transport()
    transport.install("orders", "old")
    table = transport.resolve("old").qualified
    sqlserver.sql(transport, f"ALTER TABLE {table} ALTER COLUMN [Headers] varchar(max)")
    transport.dispatch_columns([ready("old", MESSAGES[:1])])
    (shown,) = transport.show("old")
    assert shown.headers["note"] == MESSAGES[0].headers["note"]


# --- dead letters ------------------------------------------------------------------------------------------


def test_unreadable_messages_leave_with_the_completion_byte_for_byte(transport, backend):
    transport.install("billing")
    claim = claim_some(transport, 4)
    claimed = transport.book.claim_tables(transport.resolve("orders")).claimed.qualified
    column = "seq" if backend.name == "postgresql" else "RowVersion"
    rows = [row[0] for row in backend.sql(transport, f"SELECT {column} FROM {claimed} ORDER BY {column}")]
    with transport.transaction() as connection:
        spoil = f"UPDATE {claimed} SET headers = ?, body = NULL WHERE {column} = ?"
        run_sql(connection, spoil, ("not json", rows[1]))
    _, poison, _ = transport.claims.messages(claim)
    dead = [row_version for row_version, _ in poison]
    assert dead == [rows[1]]
    sent = transport.claims.complete(
        Completion(claim, sends=[ready("billing", MESSAGES)], unreadable=[*dead, *dead, 10**9], read=None)
    )
    assert sent == 4
    (shown,) = transport.show("error")
    assert (shown.raw_headers, shown.body or b"") == ("not json", b"")
    assert transport.claims.list() == []
    assert backend.sql(transport, f"SELECT count(*) FROM {claimed}")[0][0] == 0


def test_unreadable_messages_stay_when_the_completion_fails(transport):
    claim = claim_some(transport, 2)
    good, _, _ = transport.claims.messages(claim)
    with pytest.raises(QueueNotFoundError):
        transport.claims.complete(
            Completion(
                claim,
                [Operation("nowhere", new_message("x"))],
                unreadable=[message.row_version for message in good],
                read=None,
            )
        )
    assert transport.peek("error") == 0
    assert len(transport.claims.messages(claim)[0]) == 2


# --- refused before anything is written --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"bodies": [b""]}, "2 ids, 2 milliseconds, 2 headers, 1 bodies; every message needs one of each"),
        ({"headers": ["{}", None]}, "message b for .*orders.*: headers hold NoneType, not str"),
        ({"bodies": [b"", "text"]}, "message b for .*orders.*: bodies hold str, not bytes"),
        ({"headers": ["{}", '{"a": "\0"}']}, "message b for .*orders.*NUL character"),
        ({"milliseconds": [5, 0]}, "message b for .*orders.*: a time to be received of 0 ms"),
        ({"milliseconds": [5, -2]}, "a time to be received of -2 ms.*above zero"),
        ({"milliseconds": [5, 24 * 24 * HOUR + 1]}, "at most 2073600000"),
        ({"delayed": True, "milliseconds": [0, 10**15]}, "message b for .*orders.*: a delay of 10*.*hundred years"),
    ],
)
def test_columns_that_could_not_be_delivered_are_refused(transport, change, complaint):
    claim = claim_some(transport)
    fields = {
        "destination": "orders",
        "delayed": False,
        "ids": ["a", "b"],
        "milliseconds": [NEVER_EXPIRES, HOUR],
        "headers": ["{}", "{}"],
        "bodies": [b"", b""],
    }
    columns = [MessageColumns(**{**fields, **change})]
    with pytest.raises(InvalidMessageError, match=complaint):
        transport.dispatch_columns(columns)
    with pytest.raises(InvalidMessageError, match=complaint):
        transport.claims.complete(Completion(claim, sends=columns, read=None))
    assert transport.peek("orders") == 0
    assert transport.claims.complete(Completion(claim, sends=[MessageColumns(**fields)], read=None)) == 2
