"""Claims on NGinn queues: messages stay in the table, and belong to their claim until another process touches them."""

import threading
from dataclasses import replace

import pytest

from queue_pipeline.errors import ClaimLostError
from queue_pipeline.transport import Operation
from queue_pipeline.transport.claims.completion import Completion, FailedRow
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, body_of, number_of, placed


def numbers(bus, claim):
    messages, poison, _ = bus.transport.claims.messages(claim)
    assert poison == []
    return [number_of(message.body) for message in messages]


def seconds_left(bus, row=0):
    return (bus.rows()[row]["retry_time"] - bus.now()).total_seconds()


def taken_by_a_peer(bus, row_id):
    """The lease has expired, a .NET scheduler returns everything, and a .NET worker takes one message."""
    bus.end_leases()
    bus.peer_schedules()
    bus.peer_receives(row_id)


def test_an_empty_queue_has_nothing_to_claim(bus, claims):
    assert bus.transport.claim(ORDERS, "me", 10) is None
    assert claims.list() == []


def test_a_claim_is_bounded_by_messages(bus):
    bus.send(5)
    claim = bus.transport.claim(ORDERS, "me", 3)
    assert (claim.messages, claim.queue, claim.generation) == (3, ORDERS, 1)
    assert numbers(bus, claim) == [0, 1, 2]
    assert bus.subqueues() == "RRRII"


def test_a_claim_is_bounded_by_bytes_and_takes_at_least_one_message(bus):
    for n in range(4):
        bus.insert(body_of(n), msg_headers="")
    size = len(body_of(0))
    assert bus.transport.claim(ORDERS, "me", 10, max_bytes=1).messages == 1
    claim = bus.transport.claim(ORDERS, "me", 10, max_bytes=size + 1)
    assert (claim.messages, claim.bytes) == (2, 2 * size)
    assert bus.subqueues() == "RRRI"


def test_headers_count_as_bytes(bus):
    bus.insert(body_of(0), msg_headers="tenant=7")
    assert bus.transport.claim(ORDERS, "me", 10).bytes == len(body_of(0)) + len("tenant=7")


def test_a_claim_takes_what_is_due_first(bus):
    for due in (-1, -3, -2):
        bus.insert(body_of(-due), retry_time=due)
    assert sorted(numbers(bus, bus.transport.claim(ORDERS, "me", 2))) == [2, 3]


def test_a_claim_takes_ids_in_order_on_request(bus):
    other = bus.other(fifo=True)
    for due in (-1, -3, -2):
        other.insert(body_of(-due), retry_time=due)
    assert numbers(other, other.transport.claim(ORDERS, "me", 2)) == [1, 3]


def test_messages_in_work_are_invisible_to_others(bus):
    bus.send(2)
    bus.transport.claim(ORDERS, "me", 10)
    bus.peer_schedules()
    bus.transport.move_due(bus.transport.resolve(ORDERS))
    assert bus.transport.claim(ORDERS, "other", 10) is None
    with bus.transport.receive(ORDERS) as batch:
        assert len(batch) == 0
    assert bus.subqueues() == "RR"


def test_completion_sends_the_results_and_keeps_the_messages_as_processed_ones(bus, claims):
    bus.send(3)
    claim = bus.transport.claim(ORDERS, "me", 10)
    assert claims.complete(Completion(claim, [Operation(BILLING, placed(n)) for n in range(3)], read=None)) == 3
    assert bus.subqueues() == "XXX"
    assert bus.subqueues(BILLING) == "III"
    assert (bus.claimed(), claims.list()) == ([], [])


def test_a_completion_whose_own_work_fails_changes_nothing(bus, claims):
    bus.send(1)
    claim = bus.transport.claim(ORDERS, "me", 10)
    before = bus.rows()
    with pytest.raises(ZeroDivisionError):
        claims.complete(Completion(claim, [Operation(BILLING, placed(1))], work=lambda _: 1 / 0, read=None))
    assert bus.rows() == before
    assert bus.rows(BILLING) == []
    claims.complete(Completion(claim, read=None))
    assert bus.subqueues() == "X"


def test_some_messages_of_a_claim_can_fail_while_the_others_are_processed(bus, claims):
    bus.send(3)
    claim = bus.transport.claim(ORDERS, "me", 10)
    claims.complete(Completion(claim, failed=[FailedRow(1, "later", 60_000), FailedRow(3, "never")], read=None))
    assert bus.subqueues() == "RXF"
    assert [row["error_info"] for row in bus.rows()] == ["later", None, "never"]
    assert bus.claimed() == []


def test_renewing_moves_the_retry_time_of_every_message(bus, claims):
    bus.send(2)
    claim = bus.transport.claim(ORDERS, "me", 10, lease_seconds=10)
    claims.renew(claim, 1000)
    assert [seconds_left(bus, row) for row in (0, 1)] == pytest.approx([1000, 1000], abs=5)
    claims.complete(Completion(claim, read=None))
    assert bus.subqueues() == "XX"


def test_renewing_does_not_take_back_what_a_peer_has_taken(bus, claims):
    bus.send(2)
    claim = bus.transport.claim(ORDERS, "me", 10)
    taken_by_a_peer(bus, 1)
    claims.renew(claim, 1000)
    assert bus.subqueues() == "XI"
    with pytest.raises(ClaimLostError):
        claims.complete(Completion(claim, read=None))


def test_only_the_holder_can_renew(bus, claims):
    bus.send(1)
    claim = bus.transport.claim(ORDERS, "me", 10)
    before = bus.rows()
    with pytest.raises(ClaimLostError):
        claims.renew(replace(claim, owner="other"), 1000)
    assert bus.rows() == before


def test_completing_after_a_peer_took_one_message_sends_nothing(bus, claims):
    bus.send(3)
    claim = bus.transport.claim(ORDERS, "me", 10)
    taken_by_a_peer(bus, 2)
    before = bus.rows()
    with pytest.raises(ClaimLostError):
        claims.complete(Completion(claim, [Operation(BILLING, placed(1))], read=None))
    assert bus.rows(BILLING) == []
    assert bus.rows() == before


def test_marking_a_message_that_a_peer_took_changes_nothing(bus, claims):
    bus.send(2)
    claim = bus.transport.claim(ORDERS, "me", 10)
    taken_by_a_peer(bus, 2)
    before = bus.rows()
    with pytest.raises(ClaimLostError):
        claims.complete(Completion(claim, failed=[FailedRow(2, "never")], read=None))
    assert bus.rows() == before


def test_a_message_that_a_peer_returned_and_another_claim_took_no_longer_belongs_to_the_first(bus, claims):
    bus.send(1)
    first = bus.transport.claim(ORDERS, "me", 10)
    bus.end_leases()
    bus.peer_schedules()
    claims.adopt(first, "ignored")  # its row is gone from the claim, which ends
    second = bus.transport.claim(ORDERS, "other", 10)
    with pytest.raises(ClaimLostError):
        claims.complete(Completion(first, [Operation(BILLING, placed(1))], read=None))
    claims.complete(Completion(second, read=None))
    assert (bus.subqueues(), bus.rows(BILLING)) == ("X", [])


def test_an_expired_claim_is_taken_over_at_the_next_attempt(bus, claims):
    bus.send(2)
    first = bus.transport.claim(ORDERS, "me", 10)
    bus.end_leases()
    second = bus.transport.claim(ORDERS, "other", 10, lease_seconds=500)
    assert (second.claim_id, second.generation, second.owner) == (first.claim_id, 2, "other")
    assert numbers(bus, second) == [0, 1]
    assert seconds_left(bus) == pytest.approx(500, abs=5)
    with pytest.raises(ClaimLostError):
        claims.complete(Completion(first, [Operation(BILLING, placed(1))], read=None))
    claims.complete(Completion(second, read=None))
    assert (bus.subqueues(), bus.rows(BILLING)) == ("XX", [])


def test_an_expired_claim_that_is_too_large_is_taken_over_in_parts(bus, claims):
    bus.send(5)
    bus.transport.claim(ORDERS, "me", 5)
    bus.end_leases()
    taken = [bus.transport.claim(ORDERS, "other", 2) for _ in range(3)]
    assert [numbers(bus, claim) for claim in taken] == [[0, 1], [2, 3], [4]]
    for claim in reversed(taken):
        claims.complete(Completion(claim, read=None))
    assert bus.subqueues() == "XXXXX"


def test_what_a_peer_took_is_forgotten_when_a_claim_is_taken_over(bus):
    bus.send(3)
    bus.transport.claim(ORDERS, "me", 10)
    taken_by_a_peer(bus, 2)
    bus.execute(f"UPDATE {bus.table(ORDERS)} SET subqueue = 'R' WHERE id = 1")
    claim = bus.transport.claim(ORDERS, "other", 10)
    assert numbers(bus, claim) == [0]
    assert (claim.messages, claim.generation) == (1, 2)
    assert numbers(bus, bus.transport.claim(ORDERS, "other", 10)) == [2]


def test_an_adopted_claim_forgets_what_is_no_longer_its_own(bus, claims):
    bus.send(2)
    claim = bus.transport.claim(ORDERS, "me", 10)
    bus.execute(f"UPDATE {bus.table(ORDERS)} SET subqueue = 'X' WHERE id = 1")
    adopted = claims.adopt(claim, "heir")
    assert (adopted.messages, adopted.generation, numbers(bus, adopted)) == (1, 2, [1])
    claims.complete(Completion(adopted, read=None))
    assert bus.subqueues() == "XX"


def test_a_claim_without_remaining_messages_cannot_be_adopted(bus, claims):
    bus.send(1)
    claim = bus.transport.claim(ORDERS, "me", 10)
    taken_by_a_peer(bus, 1)
    assert claims.adopt(claim, "heir") is None
    assert (claims.list(), bus.claimed()) == ([], [])


def test_a_released_claim_is_taken_over_at_once(bus, claims):
    bus.send(2)
    claims.release(bus.transport.claim(ORDERS, "me", 10))
    again = bus.transport.claim(ORDERS, "other", 10)
    assert (again.generation, numbers(bus, again)) == (2, [0, 1])
    assert bus.subqueues() == "RR"


def test_a_released_claim_that_no_owner_takes_over_comes_back_through_a_peer(bus, claims):
    bus.send(1)
    claims.release(bus.transport.claim(ORDERS, "me", 10))
    bus.end_leases()
    bus.peer_schedules()
    with bus.transport.receive(ORDERS) as batch:
        assert len(batch) == 1


def test_messages_that_are_given_back_are_as_they_were(bus, claims):
    bus.insert(body_of(1), retry_time=-60, retry_count=3, error_info="old")
    before = bus.rows()
    assert claims.give_back(bus.transport.claim(ORDERS, "me", 10)) == 1
    assert bus.rows() == before
    assert (claims.list(), bus.claimed()) == ([], [])


def test_abandoned_claims_are_given_back_together(bus, claims, orders):
    bus.send(4)
    bus.transport.claim(ORDERS, "me", 1)
    first, second = (bus.transport.claim(ORDERS, "other", count) for count in (1, 2))
    claims.release(first)
    claims.release(second)
    assert claims.give_back_abandoned(orders) == 3
    assert bus.subqueues() == "RIII"


def test_a_split_claim_goes_on_in_two(bus, claims):
    bus.send(5)
    first, second = claims.split(bus.transport.claim(ORDERS, "me", 10), 2)
    assert (numbers(bus, first), numbers(bus, second)) == ([0, 1], [2, 3, 4])
    claims.complete(Completion(second, read=None))
    assert bus.subqueues() == "RRXXX"
    claims.give_back(first)
    assert bus.subqueues() == "IIXXX"


def test_messages_can_be_separated_from_their_claim(bus, claims):
    bus.send(5)
    rest, apart = claims.separate(bus.transport.claim(ORDERS, "me", 10), [(2, 2), (4, 5)])
    assert (numbers(bus, rest), numbers(bus, apart)) == ([0, 2], [1, 3, 4])
    claims.complete(Completion(apart, read=None))
    assert bus.subqueues() == "RXRXX"


def test_messages_that_failed_before_are_found(bus, claims):
    for n in range(3):
        bus.insert(body_of(n), retry_count=n % 2)
    assert claims.marked(bus.transport.claim(ORDERS, "me", 10), '"NServiceBus.Retries"') == [2]


def test_a_claim_is_read_in_parts(bus):
    bus.send(7)
    claim, reader = bus.transport.claim(ORDERS, "me", 10), bus.transport.claim_reader
    parts = reader.parts(claim, max_messages=3)
    assert [(part.first_row_version, part.last_row_version, part.messages) for part in parts] == [
        (1, 3, 3),
        (4, 6, 3),
        (7, 7, 1),
    ]
    assert reader.read_part(claim, parts[1]).column("row_version").to_pylist() == [4, 5, 6]


def test_bodies_are_left_out_on_request(bus):
    bus.send(2)
    claim = bus.transport.claim(ORDERS, "me", 10)
    (batch,) = bus.transport.claim_reader.read(claim, body=False)
    assert batch.column("body").to_pylist() == [None, None]
    assert all("shop.order-placed" in text for text in batch.column("headers").to_pylist())


def test_a_part_from_which_a_peer_took_a_message_is_not_read(bus):
    bus.send(3)
    claim, reader = bus.transport.claim(ORDERS, "me", 10), bus.transport.claim_reader
    (part,) = reader.parts(claim)
    bus.execute(f"UPDATE {bus.table(ORDERS)} SET subqueue = 'X' WHERE id = 2")
    with pytest.raises(ClaimLostError, match="took some of its messages"):
        reader.read_part(claim, part)


def test_a_claim_of_many_messages_is_completed_at_once(bus, claims):
    bus.send(2_500)
    claim = bus.transport.claim(ORDERS, "me", 10_000)
    assert claim.messages == 2_500
    claims.renew(claim)
    claims.complete(Completion(claim, read=None))
    assert set(bus.subqueues()) == {"X"}


def test_competing_processes_never_share_a_message(bus):
    bus.send(60)
    found, lock = [], threading.Lock()

    def work():
        own = bus.other()
        while (claim := own.transport.claim(ORDERS, f"{threading.get_ident()}", 7)) is not None:
            with lock:
                found.extend(numbers(own, claim))
            own.transport.claims.complete(Completion(claim, read=None))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(60))
    assert set(bus.subqueues()) == {"X"}
    assert bus.claimed() == []
