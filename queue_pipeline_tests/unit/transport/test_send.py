from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine

from queue_pipeline.errors import AddressError, InvalidMessageError
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import NSERVICEBUS, AddressBook
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.sqlserver import SqlServer
from queue_pipeline.transport.layouts.nservicebus.rows import NServiceBusRows
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import Operation, OutgoingMessage, new_message
from queue_pipeline.transport.send import Sender, deduplicate

BOOK = AddressBook(SqlServer(), catalog="nservicebus")


def operation(message_id: str, destination: str, body: bytes = b"") -> Operation:
    return Operation(destination, OutgoingMessage(body, {wire.MESSAGE_ID: message_id} if message_id else {}))


def unreachable():
    raise AssertionError("a connection was opened")


@pytest.fixture
def database() -> Database:
    return Database(create_engine("mssql+pyodbc://sa@localhost/nservicebus?driver=FreeTDS", creator=unreachable))


@pytest.fixture
def sender(database: Database) -> Sender:
    return Sender(database, BOOK, {NSERVICEBUS: NServiceBusRows(database, BOOK, None)})


# --- one copy a destination --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([("1", "Destination@dbo"), ("1", "Destination")], 1),
        ([("1", "Destination@dbo"), ("1", "Destination@someSchema")], 2),
        ([("1", "Destination@dbo"), ("1", "Destination@someSchema"), ("1", "Destination")], 2),
        ([("1", "Destination@dbo"), ("2", "Destination")], 2),
    ],
)
def test_a_message_goes_to_a_destination_once_in_whatever_spelling(operations, expected):
    """UT-14: by message id and canonical address."""
    kept = deduplicate([operation(*each) for each in operations], BOOK.resolve)
    assert len(kept) == expected


def test_the_later_of_two_takes_the_place_of_the_earlier():
    kept = deduplicate(
        [operation("1", "a", b"first"), operation("2", "a", b"second"), operation("1", "a@[dbo]", b"third")],
        BOOK.resolve,
    )
    assert [message.body for _, message in kept] == [b"third", b"second"]


def test_messages_without_an_id_are_all_sent():
    kept = deduplicate([operation("", "a"), operation("", "a"), operation("", "a")], BOOK.resolve)
    assert len(kept) == 3


@given(st.lists(st.tuples(st.sampled_from(["", "1", "2", "3"]), st.sampled_from(["a", "a@dbo", "A", "b@x"]))))
def test_no_pair_of_id_and_destination_is_lost_or_duplicated(pairs):
    kept = deduplicate([operation(*pair) for pair in pairs], BOOK.resolve)
    sent = [(message.headers.get(wire.MESSAGE_ID, ""), table.canonical) for table, message in kept]
    wanted = [(identity, BOOK.resolve(destination).canonical) for identity, destination in pairs]
    with_id = [pair for pair in sent if pair[0]]
    assert len(with_id) == len(set(with_id))
    assert set(sent) == set(wanted)
    assert sent.count(("", "a@[dbo]@[nservicebus]")) == wanted.count(("", "a@[dbo]@[nservicebus]"))


# --- preparing ---------------------------------------------------------------------------------------------


def test_messages_are_grouped_by_table_in_the_order_in_which_they_were_given(sender):
    prepared = sender.prepare(
        [operation("1", "a", b"1"), operation("2", "b", b"2"), operation("3", "a@dbo", b"3"), operation("4", "b", b"4")]
    )
    assert [(each.table.table, each.delayed, [row.body for row in each.rows()]) for each in prepared] == [
        ("a", False, [b"1", b"3"]),
        ("b", False, [b"2", b"4"]),
    ]


def test_every_row_has_an_id_of_its_own_even_when_one_message_goes_to_two_queues(sender):
    message = new_message(b"same")
    prepared = sender.prepare([Operation("a", message), Operation("b", message)])
    ids = [row.id for each in prepared for row in each.rows()]
    assert len(ids) == len(set(ids)) == 2
    assert message.headers[wire.MESSAGE_ID] not in ids


def test_a_delayed_message_waits_beside_its_destination_and_knows_where_it_goes(sender):
    (shipment,) = sender.prepare([Operation("a@sales", OutgoingMessage(delay=timedelta(seconds=5)))])
    (row,) = shipment.rows()
    assert shipment.table.canonical == "a.Delayed@[sales]@[nservicebus]"
    assert row.milliseconds == 5_000
    assert wire.decode(row.headers)[wire.FORWARD_DESTINATION] == "a@[sales]@[nservicebus]"


def test_an_endpoint_keeps_its_delayed_messages_in_its_own_table(database):
    sender = Sender(database, BOOK, {NSERVICEBUS: NServiceBusRows(database, BOOK, "shop")})
    now, later = OutgoingMessage(b"now"), OutgoingMessage(b"later", delay=timedelta(seconds=5))
    prepared = sender.prepare([Operation("a", now), Operation("a", later), Operation("b", later)])
    assert [(each.table.table, each.size) for each in prepared] == [
        ("a", 1),
        ("shop.Delayed", 1),
        ("shop.Delayed", 1),
    ]
    forwards = [wire.decode(row.headers)[wire.FORWARD_DESTINATION] for each in prepared[1:] for row in each.rows()]
    assert forwards == ["a@[dbo]@[nservicebus]", "b@[dbo]@[nservicebus]"]


def test_a_message_that_is_not_delayed_carries_no_forwarding_header(sender):
    (row,) = sender.prepare([operation("1", "a")])[0].rows()
    assert wire.decode(row.headers) == {wire.MESSAGE_ID: "1"}


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (Operation("a", OutgoingMessage("text")), InvalidMessageError),  # type: ignore[arg-type]
        (Operation("a", OutgoingMessage(headers={"n": 7})), InvalidMessageError),  # type: ignore[dict-item]
        (Operation("a", OutgoingMessage(time_to_be_received=timedelta(0))), InvalidMessageError),
        (Operation("", OutgoingMessage()), AddressError),
    ],
)
def test_nothing_is_sent_when_one_of_many_is_wrong(sender, bad, error):
    with pytest.raises(error):
        sender.dispatch([operation("1", "a"), operation("2", "b"), bad])


def test_an_empty_dispatch_does_not_even_connect(sender):
    assert sender.dispatch([]) == 0
    assert sender.send("a", []) == 0
    assert sender.dispatch(iter(())) == 0


def test_a_queue_may_be_given_as_text_as_parts_or_as_a_table(sender):
    prepared = sender.prepare(
        [
            operation("1", "a"),
            Operation(QueueAddress("a"), OutgoingMessage()),
            Operation(BOOK.resolve("a"), OutgoingMessage()),
        ]
    )
    assert [(each.table.canonical, each.size) for each in prepared] == [("a@[dbo]@[nservicebus]", 3)]
