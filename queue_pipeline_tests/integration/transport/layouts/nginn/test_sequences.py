"""Sequences: numbered messages are worked on in their order, however they arrive."""

import random

import pytest

from queue_pipeline.errors import ClaimLostError
from queue_pipeline.transport import Operation
from queue_pipeline.transport.claims.completion import Completion, FailedRow
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, body_of, number_of, placed, settings


@pytest.fixture
def nginn_options():
    return {"sequences": True}


def insert(bus, number, sequence="s", length=None, **columns):
    headers = f"_NG-Seq={sequence}|_NG-SeqNum={number}"
    if length is not None:
        headers += f"|_NG-SeqLen={length}"
    return bus.insert(body_of(number), msg_headers=headers, **columns)


def look_again(bus):
    """The time at which postponed messages are looked at again."""
    for row in bus.rows():
        if row["subqueue"] == "R":
            bus.set_due(-1, row["id"])
    bus.peer_schedules()


def receive(bus, count=100):
    with bus.transport.receive(ORDERS, count) as batch:
        return [number_of(message.body) for message in batch]


def claim(bus, count=100):
    taken = bus.transport.claim(ORDERS, "me", count)
    if taken is None:
        return []
    messages, _, _ = bus.transport.claims.messages(taken)
    bus.transport.claims.complete(Completion(taken, read=None))
    return [number_of(message.body) for message in messages]


def work_off(bus, take, most_passes=50):
    """Take until nothing is left to wait for; returns the batches."""
    batches = []
    for _ in range(most_passes):
        if batch := take(bus):
            batches.append(batch)
        elif "R" in bus.subqueues():
            look_again(bus)
        else:
            return batches
    raise AssertionError(f"still waiting after {most_passes} passes: {bus.subqueues()}")


@pytest.mark.parametrize("take", [receive, claim])
def test_messages_that_arrive_in_order_are_handed_over_at_once(bus, take):
    for number in range(3):
        insert(bus, number, length=3)
    assert take(bus) == [0, 1, 2]
    assert bus.subqueues() == "XXX"
    assert bus.sequences() == {}


@pytest.mark.parametrize("take", [receive, claim])
def test_a_batch_ends_before_the_first_gap_in_the_numbers(bus, take):
    for number in (0, 1, 3, 4):
        insert(bus, number)
    assert take(bus) == [0, 1]
    assert bus.subqueues() == "XXRR"


@pytest.mark.parametrize("take", [receive, claim])
def test_a_message_waits_until_its_predecessor_is_done(bus, take):
    late = insert(bus, 1, retry_time=-120)
    assert take(bus) == []
    assert bus.row(late)["subqueue"] == "R"
    insert(bus, 0)
    assert take(bus) == [0]
    assert bus.row(late)["subqueue"] == "I", "made ready in the transaction of the one before it"
    assert take(bus) == [1]


def test_the_state_is_kept_in_the_form_of_the_reference_and_deleted_at_the_end(bus):
    third = insert(bus, 2, length=3)
    first = insert(bus, 0)
    assert receive(bus) == [0]
    (state,) = bus.sequences().values()
    assert {name: state[name] for name in ("Id", "LastProcessedNumber", "RemainingMessages", "Length")} == {
        "Id": "s",
        "LastProcessedNumber": 0,
        "RemainingMessages": {"2": third},
        "Length": 3,
    }
    assert "LastMessageSeen" in state
    insert(bus, 1)
    assert (receive(bus), receive(bus)) == ([1], [2])
    assert bus.sequences() == {}
    assert bus.row(first)["subqueue"] == "X"


def test_processing_continues_from_a_state_that_dotnet_wrote(bus):
    table = bus.transport.nginn.incoming.sequences.table.qualified
    waiting = insert(bus, 6, subqueue="R", retry_time=100)
    state = (
        '{"$type":"NGinnBPM.MessageBus.Impl.SequenceState, NGinnBPM.MessageBus","Id":"s","LastProcessedNumber":4,'
        f'"RemainingMessages":{{"$type":"System.Collections.Generic.Dictionary","6":"{waiting}"}},'
        '"LastMessageSeen":"2015-01-01T10:00:00.123+01:00","Length":7}'
    )
    bus.execute(f"INSERT INTO {table} (id, data, last_modified) VALUES ('s', ?, {bus.moment()})", (state,))
    insert(bus, 5)
    assert (receive(bus), receive(bus)) == ([5], [6])
    assert bus.sequences() == {}


@pytest.mark.parametrize("take", [receive, claim])
def test_a_number_that_was_handled_is_handled_again_when_it_comes_again(bus, take):
    for number in (0, 1):
        insert(bus, number)
    assert take(bus) == [0, 1]
    insert(bus, 0)
    insert(bus, 2)
    assert sorted(take(bus)) == [0, 2]
    assert bus.sequences()["s"]["LastProcessedNumber"] == 2


@pytest.mark.parametrize("take", [receive, claim])
def test_duplicates_in_one_batch_are_both_handled(bus, take):
    for number in (0, 0, 1):
        insert(bus, number, length=2)
    assert sorted(take(bus)) == [0, 0, 1]
    assert bus.sequences() == {}


@pytest.mark.parametrize("take", [receive, claim])
def test_a_missing_number_blocks_those_after_it_but_no_other_sequence(bus, take):
    insert(bus, 1, "a", length=2)
    insert(bus, 0, "b", length=1)
    bus.insert(body_of(7))
    assert sorted(take(bus)) == [0, 7]
    for _ in range(3):
        look_again(bus)
        assert take(bus) == []
    assert bus.subqueues() == "RXX"
    assert list(bus.sequences()) == ["a"]


@pytest.mark.parametrize("take", [receive, claim])
@pytest.mark.parametrize("seed", range(4))
def test_every_message_is_handled_once_and_in_order_however_they_arrive(bus, take, seed):
    chance = random.Random(seed)
    messages = [(sequence, number) for sequence in "ab" for number in range(6)]
    chance.shuffle(messages)
    for at, (sequence, number) in enumerate(messages):
        insert(bus, number, sequence, length=6 if number == 3 else None, correlation_id=sequence, retry_time=at - 100)
    handled: dict[str, list[int]] = {"a": [], "b": []}

    def some(own):
        count = chance.randint(1, 5)
        if take is claim:
            taken = own.transport.claim(ORDERS, "me", count)
            found = own.transport.claims.messages(taken)[0] if taken else []
            if taken:
                own.transport.claims.complete(Completion(taken, read=None))
        else:
            with own.transport.receive(ORDERS, count) as batch:
                found = list(batch)
        for message in found:
            handled[message.headers["_NG-Seq"]].append(number_of(message.body))
        return found

    work_off(bus, some)
    assert handled == {"a": list(range(6)), "b": list(range(6))}
    assert bus.sequences() == {}
    assert set(bus.subqueues()) == {"X"}


@pytest.mark.parametrize("take", [receive, claim])
def test_a_message_that_would_be_read_before_its_predecessor_comes_with_the_next_batch(bus, take):
    for number in (2, 0, 1):
        insert(bus, number, length=3)
    assert take(bus) == [0, 1]
    assert bus.subqueues() == "IXX"
    assert take(bus) == [2]


def test_a_batch_is_received_in_the_order_of_the_due_times(bus):
    insert(bus, 0, retry_time=-60)
    insert(bus, 1, retry_time=-300, length=2)
    assert (receive(bus), receive(bus)) == ([0], [1])


def test_a_failed_receive_does_not_advance_the_sequence(bus):
    insert(bus, 0, length=2)
    insert(bus, 1, retry_time=1)
    with pytest.raises(ZeroDivisionError), bus.transport.receive(ORDERS, 1):
        raise ZeroDivisionError
    assert receive(bus) == []
    assert bus.subqueues() == "RR"
    assert work_off(bus, receive)[0][0] == 0


def test_the_later_part_of_a_split_claim_waits_for_the_earlier_one(bus, claims):
    for number in range(4):
        insert(bus, number, length=4)
    first, second = claims.split(bus.transport.claim(ORDERS, "me", 10), 2)
    with pytest.raises(ClaimLostError, match=r"belong to a sequence"):
        claims.complete(Completion(second, [Operation(BILLING, placed(1))], read=None))
    assert bus.rows(BILLING) == []
    assert bus.subqueues() == "RRRR"
    assert [row["id"] for row in bus.claimed()] == [1, 2]
    look_again_only_at = bus.rows()[2:]
    assert all(row["retry_count"] == 0 and row["last_processed"] for row in look_again_only_at)
    claims.complete(Completion(first, read=None))
    assert bus.subqueues() == "XXRR"
    assert [number for batch in work_off(bus, claim) for number in batch] == [2, 3]
    assert bus.sequences() == {}


def test_the_parts_of_a_split_claim_can_be_completed_in_their_order(bus, claims):
    for number in range(4):
        insert(bus, number, length=4)
    for part in claims.split(bus.transport.claim(ORDERS, "me", 10), 2):
        claims.complete(Completion(part, read=None))
    assert bus.subqueues() == "XXXX"
    assert bus.sequences() == {}


def test_a_message_that_fails_in_the_middle_holds_back_those_after_it(bus, claims):
    for number in range(3):
        insert(bus, number, length=3)
    with pytest.raises(ClaimLostError, match=r"belong to a sequence"):
        claims.complete(
            Completion(bus.transport.claim(ORDERS, "me", 10), failed=[FailedRow(2, "no paper", 60_000)], read=None)
        )
    assert bus.subqueues() == "IIR", "the last one waits, the others are tried again"
    again = bus.transport.claim(ORDERS, "me", 10)
    claims.complete(Completion(again, failed=[FailedRow(2, "no paper", 60_000)], read=None))
    assert bus.subqueues() == "XRR"
    assert bus.row(2)["retry_count"] == 1
    assert [number for batch in work_off(bus, claim) for number in batch] == [1, 2]


def test_other_messages_of_a_claim_that_was_out_of_turn_are_ready_again(bus, claims):
    for number in range(2):
        insert(bus, number)
    bus.insert(body_of(9))
    first, second = claims.split(bus.transport.claim(ORDERS, "me", 10), 1)
    with pytest.raises(ClaimLostError):
        claims.complete(Completion(second, read=None))
    assert bus.subqueues() == "RRI"
    claims.complete(Completion(first, read=None))
    assert bus.subqueues() == "XRI"


@pytest.mark.parametrize(
    "headers",
    [
        "_NG-Seq=s",
        "_NG-Seq=s|_NG-SeqNum=x",
        "_NG-Seq=s|_NG-SeqNum=-1",
        f"_NG-Seq=s|_NG-SeqNum={'1' * 5_000}",
        "_NG-SeqNum=4",
        "_NG-Seq=|_NG-SeqNum=4",
        f"_NG-Seq={'s' * 101}|_NG-SeqNum=4",
    ],
    ids=["no number", "no digits", "below zero", "a huge number", "no sequence", "an empty one", "a long one"],
)
@pytest.mark.parametrize("take", [receive, claim])
def test_a_message_without_a_sequence_or_a_number_is_handed_over(bus, take, headers):
    bus.insert(body_of(1), msg_headers=headers)
    assert take(bus) == [1]


@pytest.mark.parametrize("take", [receive, claim])
def test_the_headers_mean_nothing_unless_sequences_are_asked_for(bus, take):
    other = bus.other(sequences=False)
    insert(other, 5)
    assert take(other) == [5]
    assert bus.sequences() == {}


def test_without_sequences_their_table_is_not_installed(backend):
    names = [made.table for made in backend.transport(nginn=settings()).install(ORDERS)]
    assert not any("Sequence" in name for name in names)
