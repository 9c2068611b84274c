"""A completion deletes the messages that were read, or none: the transaction compares the two."""

import pytest

from queue_pipeline.errors import ClaimLostError, RowsDifferError
from queue_pipeline.transport import Operation, OutgoingMessage, RowsRead, TransactionMode, new_message
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.claimed_rows import (
    add_row,
    change_row_version,
    remove_row,
    row_versions,
    shift_row_versions,
)

TAMPER = [add_row, remove_row, change_row_version]


def send(transport, count, queue="orders"):
    transport.send(queue, [OutgoingMessage(str(n).encode(), {"n": str(n)}) for n in range(count)])


def bodies(transport, queue="orders"):
    return [int(shown.body) for shown in transport.show(queue, 100)]


def read_arrow(transport, claim):
    batches = list(transport.claim_reader.read(claim, max_messages=2))
    return RowsRead.of(version for batch in batches for version in batch.column("row_version").to_pylist())


@pytest.mark.parametrize("tamper", TAMPER)
def test_a_claim_that_holds_other_messages_than_were_read_is_not_completed(backend, transport, tamper):
    send(transport, 5)
    claim = transport.claim("orders", "me", 5)
    good, _, read = transport.claims.messages(claim)
    tamper(backend, transport, claim)
    held = row_versions(backend, transport, claim)
    results = [Operation("orders", new_message(message.body)) for message in good]
    with pytest.raises(RowsDifferError) as raised:
        transport.claims.complete(Completion(claim, results, read=read))
    message = str(raised.value)
    assert str(read) in message and str(RowsRead.of(held)) in message, "both are named"
    assert claim.claim_id in message and "orders" in message and "queue-pipeline claims return" in message
    assert transport.peek("orders") == 0, "nothing was sent"
    assert row_versions(backend, transport, claim) == held, "nothing was deleted"
    transport.claims.release(claim)
    assert transport.claims.give_back_abandoned(transport.resolve("orders")) == len(held), "the next step works"
    assert (transport.peek("orders"), transport.claims.list()) == (len(held), [])


@pytest.mark.parametrize("tamper", [add_row, remove_row])
def test_a_claim_with_another_number_of_messages_than_its_own_cannot_be_read(backend, transport, tamper):
    send(transport, 3)
    claim = transport.claim("orders", "me", 3)
    tamper(backend, transport, claim)
    for read in (transport.claims.messages, lambda one: read_arrow(transport, one), transport.claim_reader.parts):
        with pytest.raises(RowsDifferError, match=r"[24] messages were read, but the claim holds 3 by its count"):
            read(claim)
    assert len(row_versions(backend, transport, claim)) == (4 if tamper is add_row else 2)


def test_reading_a_claim_that_another_has_completed_reports_that_it_was_lost(transport):
    send(transport, 3)
    claim = transport.claim("orders", "me", 3)
    transport.claims.release(claim)
    other = transport.claim("orders", "other", 3)
    transport.claims.complete(Completion(other, read=transport.claims.messages(other).read))
    for read in (transport.claims.messages, lambda one: read_arrow(transport, one)):
        with pytest.raises(ClaimLostError, match="no longer held by me"):
            read(claim)


def test_a_part_that_lost_messages_since_it_was_planned_is_not_read(backend, transport):
    send(transport, 3)
    claim = transport.claim("orders", "me", 3)
    (part,) = transport.claim_reader.parts(claim)
    remove_row(backend, transport, claim)
    with pytest.raises(ClaimLostError):
        transport.claim_reader.read_part(claim, part)


def test_dead_letters_are_part_of_what_was_read(backend, transport):
    send(transport, 3)
    claim = transport.claim("orders", "me", 3)
    good, _, read = transport.claims.messages(claim)
    dead = good[1].row_version
    with pytest.raises(RowsDifferError):
        transport.claims.complete(
            Completion(claim, unreadable=[dead], read=RowsRead.of(m.row_version for m in good if m.row_version != dead))
        )
    assert transport.peek("error") == 0
    transport.claims.complete(Completion(claim, unreadable=[dead], read=read))
    assert (bodies(transport, "error"), transport.claims.list()) == ([1], [])


def test_messages_with_negative_row_versions_are_claimed_read_split_and_completed(backend, transport):
    """As after a sequence of 32 bits was exhausted, and restarted at its minimum."""
    send(transport, 6)
    shift_row_versions(backend, transport, "orders", -(2**31) - 1)
    claim = transport.claim("orders", "me", 6)
    assert (claim.messages, claim.first_row_version) == (6, -(2**31))
    good, _, read = transport.claims.messages(claim)
    assert [int(message.body) for message in good] == list(range(6))
    assert read_arrow(transport, claim) == read
    first, rest = transport.claims.split(claim, 2)
    assert (first.messages, rest.messages, rest.first_row_version) == (2, 4, 2 - 2**31)
    rest, apart = transport.claims.separate(rest, [(5 - 2**31, 5 - 2**31)])
    assert (rest.messages, apart.messages) == (3, 1)
    left = transport.claims.dead_letter(rest, [2 - 2**31])
    assert left.messages == 2
    for part in (first, left, apart):
        transport.claims.complete(Completion(part, read=transport.claims.messages(part).read))
    assert (transport.claims.list(), transport.peek("orders")) == ([], 0)
    assert bodies(transport, "error") == [2]


def test_a_claim_with_negative_and_positive_row_versions_is_one_claim(backend, transport):
    send(transport, 5)
    shift_row_versions(backend, transport, "orders", -3)
    claim = transport.claim("orders", "me", 5)
    assert (claim.messages, claim.first_row_version) == (5, -2)
    transport.claims.complete(Completion(claim, read=read_arrow(transport, claim)))
    assert transport.claims.list() == []


@pytest.mark.parametrize("mode", TransactionMode)
def test_messages_with_negative_row_versions_are_received(backend, transport, mode):
    send(transport, 3)
    shift_row_versions(backend, transport, "orders", -100)
    with transport.receive("orders", 10, mode) as batch:
        assert [int(message.body) for message in batch] == [0, 1, 2]
        batch.messages.clear()
    assert (transport.peek("orders"), transport.claims.list()) == (0, [])


def test_failed_messages_with_negative_row_versions_are_listed_counted_and_returned(backend, transport):
    failed = {wire.FAILED_QUEUE: transport.resolve("orders").canonical}
    assert transport.failed.count("error") == 0
    transport.send("error", [OutgoingMessage(str(n).encode(), failed) for n in range(3)])
    shift_row_versions(backend, transport, "error", -100)
    assert [message.row_version for message in transport.failed.list("error")] == [-99, -98, -97]
    assert transport.failed.count("error") == 3
    assert transport.failed.retry("error", Selection(everything=True)).returned == 3
    assert bodies(transport) == [0, 1, 2]
