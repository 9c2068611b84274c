"""What a completion marks as processed is what was read, where messages stay in their table."""

import pytest

from queue_pipeline.errors import ClaimLostError, RowsDifferError
from queue_pipeline.transport import Operation, RowsRead
from queue_pipeline.transport.claims.completion import Completion, FailedRow
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, number_of, placed


def claimed(bus):
    return bus.transport.book.claim_tables(bus.transport.resolve(ORDERS)).claimed.qualified


def note(bus, row):
    """Put a ready message into the claim of the first one, as no statement of ours does."""
    notes, queue = claimed(bus), bus.table(ORDERS)
    bus.execute(
        f"INSERT INTO {notes} (claim_id, id, bytes, due, lease) "
        f"SELECT claim_id, {row}, bytes, due, lease FROM {notes} WHERE id = 1"
    )
    lease = f"(SELECT lease FROM {notes} WHERE id = 1)"
    bus.execute(f"UPDATE {queue} SET subqueue = 'R', retry_time = {lease} WHERE id = {row}")


def forget(bus, row):
    bus.execute(f"DELETE FROM {claimed(bus)} WHERE id = {row}")


def swap(bus, row):
    forget(bus, 3)
    note(bus, row)


@pytest.mark.parametrize("tamper", [note, lambda bus, row: forget(bus, 3), swap], ids=["more", "fewer", "others"])
def test_a_claim_that_notes_other_messages_than_were_read_is_not_completed(bus, claims, tamper):
    bus.send(5)
    claim = bus.transport.claim(ORDERS, "me", 3)
    _, _, read = claims.messages(claim)
    tamper(bus, 5)
    before = bus.subqueues()
    with pytest.raises(
        RowsDifferError, match=r"3 messages \(row versions 1 to 3, .* were read, but the claim holds"
    ) as error:
        claims.complete(
            Completion(claim, [Operation(BILLING, placed(1))], failed=[FailedRow(2, "no paper")], read=read)
        )
    assert claim.claim_id in str(error.value) and ORDERS in str(error.value)
    assert (bus.subqueues(), bus.transport.peek(BILLING)) == (before, 0)
    assert [status.claim_id for status in claims.list()] == [claim.claim_id]


def test_failed_messages_are_part_of_what_was_read(bus, claims):
    bus.send(3)
    claim = bus.transport.claim(ORDERS, "me", 3)
    good, _, read = claims.messages(claim)
    with pytest.raises(RowsDifferError):
        claims.complete(Completion(claim, failed=[FailedRow(2, "no paper")], read=RowsRead.of([1, 3])))
    claims.complete(Completion(claim, failed=[FailedRow(good[1].row_version, "no paper")], read=read))
    assert bus.subqueues() == "XFX"


def test_a_message_that_a_peer_took_is_not_read_for_the_whole_claim(bus, claims):
    bus.send(3)
    claim = bus.transport.claim(ORDERS, "me", 3)
    bus.execute(f"UPDATE {bus.table(ORDERS)} SET subqueue = 'X' WHERE id = 2")
    with pytest.raises(ClaimLostError, match="took some of its messages"):
        claims.messages(claim)
    claims.release(claim)
    rest = bus.transport.claim(ORDERS, "me", 3)
    assert [number_of(message.body) for message in claims.messages(rest).good] == [0, 2]


def test_messages_with_negative_ids_are_claimed_read_split_and_completed(bus, claims):
    if bus.backend.name == "sqlserver":
        pytest.skip("needs numbers that can be changed; SQL Server updates no identity column")
    bus.send(4)
    bus.execute(f"UPDATE {bus.table(ORDERS)} SET id = id - 103")
    claim = bus.transport.claim(ORDERS, "me", 10)
    assert (claim.messages, claim.first_row_version) == (4, -102)
    good, _, read = claims.messages(claim)
    assert [number_of(message.body) for message in good] == [0, 1, 2, 3]
    assert RowsRead.of(next(bus.transport.claim_reader.read(claim)).column("row_version").to_pylist()) == read
    first, rest = claims.split(claim, 1)
    for part in (first, rest):
        claims.complete(
            Completion(
                part, failed=[FailedRow(-101, "no paper")] if part is rest else (), read=claims.messages(part).read
            )
        )
    assert sorted(bus.subqueues()) == ["F", "X", "X", "X"]
    assert [one.id for one in bus.transport.nginn.failed(bus.transport.resolve(ORDERS))] == [-101]
