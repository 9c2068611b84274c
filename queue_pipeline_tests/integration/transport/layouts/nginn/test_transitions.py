"""Every way from one subqueue to another, and which columns change on it: all others stay as they are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import pytest

from queue_pipeline.transport.claims.completion import Completion, FailedRow
from queue_pipeline_tests.support.nginn.nginn_bus import ORDERS, Bus, StoredRow, body_of, changed, placed

ATTEMPT = {"subqueue", "retry_count", "retry_time", "error_info", "last_processed"}
DAY = 24 * 3600


class Boom(Exception):
    """What a handler raises."""


def seconds(row: StoredRow, bus: Bus, column: str = "retry_time") -> float:
    return (row[column] - bus.now()).total_seconds()


def receive(bus, _):
    with bus.transport.receive(ORDERS) as batch:
        assert len(batch) == 1


def receive_and_fail(bus, _):
    with pytest.raises(Boom), bus.transport.receive(ORDERS):
        raise Boom("no paper")


def claim(bus, _=None, **options):
    return bus.transport.claim(ORDERS, "me", 10, **options)


def complete(bus, _):
    bus.transport.claims.complete(Completion(claim(bus), read=None))


def give_back(bus, _):
    assert bus.transport.claims.give_back(claim(bus)) == 1


def release(bus, _):
    bus.transport.claims.release(claim(bus))


def mark_retry(bus, row):
    bus.transport.claims.complete(Completion(claim(bus), failed=[FailedRow(row, "no paper", 60_000)], read=None))


def mark_failed(bus, row):
    bus.transport.claims.complete(Completion(claim(bus), failed=[FailedRow(row, "no paper")], read=None))


def dead_letter(bus, row):
    assert bus.transport.claims.dead_letter(claim(bus), [row]) is None


def schedule(bus, _):
    bus.transport.move_due(bus.transport.resolve(ORDERS))


def expire_then(act: Callable[[Bus, int], object]):
    def expired(bus, row):
        claim(bus)
        bus.end_leases()
        act(bus, row)

    return expired


def peer_schedules(bus, _):
    bus.peer_schedules()


def retry_failed(bus, _):
    assert bus.transport.nginn.retry_failed(bus.transport.resolve(ORDERS)) == 1


def retry_failed_by_id(bus, row):
    assert bus.transport.nginn.retry_failed(bus.transport.resolve(ORDERS), row) == 1


def receive_out_of_turn(bus, _):
    with bus.other(sequences=True).transport.receive(ORDERS) as batch:
        assert len(batch) == 0


def claim_out_of_turn(bus, _):
    assert claim(bus.other(sequences=True)) is None


@dataclass(frozen=True)
class Transition:
    """A row before, what is done, and the row after; due is in seconds from the end of the test."""

    before: Mapping[str, object]
    act: Callable[[Bus, int], object]
    to: str
    columns: set[str]
    due: float | None = None
    retries: int = 0


PAST = {"subqueue": "R", "retry_time": -60}
FAILED = {"subqueue": "F", "retry_count": 8, "error_info": "no paper"}
SECOND = {"msg_headers": "_NG-Seq=s|_NG-SeqNum=1"}

TABLE = {
    "received": Transition({}, receive, "X", {"subqueue", "last_processed"}),
    "received after an error, which stays": Transition(
        {"retry_count": 2, "error_info": "old"}, receive, "X", {"subqueue", "last_processed"}, retries=2
    ),
    "received and failed": Transition({}, receive_and_fail, "R", ATTEMPT, 30, 1),
    "received and failed again": Transition({"retry_count": 3}, receive_and_fail, "R", ATTEMPT, 7_200, 4),
    "received and failed at the last retry": Transition({"retry_count": 7}, receive_and_fail, "F", ATTEMPT, 0, 8),
    "claimed": Transition({}, claim, "R", {"subqueue", "retry_time"}, 300),
    "claimed and completed": Transition({"retry_time": -60}, complete, "X", {"subqueue", "last_processed"}, -60),
    "claimed and completed after an error, which stays": Transition(
        {"retry_count": 2, "error_info": "old"}, complete, "X", {"subqueue", "last_processed"}, 0, 2
    ),
    "claimed and given back": Transition({"retry_time": -60}, give_back, "I", set(), -60),
    "claimed and released": Transition({}, release, "R", {"subqueue", "retry_time"}, 300),
    "marked for a retry": Transition({"retry_count": 1}, mark_retry, "R", ATTEMPT, 60, 2),
    "marked as failed": Transition({"retry_count": 1}, mark_failed, "F", ATTEMPT, 0, 2),
    "dead-lettered": Transition({}, dead_letter, "F", ATTEMPT, 0, 1),
    "due": Transition(PAST, schedule, "I", {"subqueue"}, -60),
    "not due": Transition({"subqueue": "R", "retry_time": 60}, schedule, "R", set(), 60),
    "due, moved by a peer": Transition(PAST, peer_schedules, "I", {"subqueue"}, -60),
    "lease over, our scheduler leaves it": Transition({}, expire_then(schedule), "R", {"subqueue", "retry_time"}, -1),
    "lease over, a peer's scheduler returns it": Transition({}, expire_then(peer_schedules), "I", {"retry_time"}, -1),
    "lease over, the next claim takes it over": Transition(
        {}, expire_then(claim), "R", {"subqueue", "retry_time"}, 300
    ),
    "lease over, taken over and completed": Transition(
        {"retry_time": -60}, expire_then(complete), "X", {"subqueue", "last_processed"}, -60
    ),
    "failed, all tried again": Transition(FAILED, retry_failed, "I", {"subqueue", "retry_count", "error_info"}, 0),
    "failed, one tried again": Transition(
        FAILED, retry_failed_by_id, "I", {"subqueue", "retry_count", "error_info"}, 0
    ),
    "received out of turn": Transition(
        SECOND, receive_out_of_turn, "R", {"subqueue", "retry_time", "last_processed"}, 8.39
    ),
    "claimed out of turn": Transition(
        SECOND, claim_out_of_turn, "R", {"subqueue", "retry_time", "last_processed"}, 8.39
    ),
}


@pytest.fixture
def nginn_options():
    return {"sequences": True}


@pytest.mark.parametrize("name", TABLE)
def test_an_operation_changes_only_the_listed_columns(bus, name):
    case = TABLE[name]
    plain = bus.other()
    row_id = plain.insert(body_of(1), **case.before)
    bystander = plain.insert(body_of(2), subqueue="X", retry_time=-5)
    before, beside = plain.row(row_id), plain.row(bystander)
    case.act(plain, row_id)
    after = plain.row(row_id)
    assert after["subqueue"] == case.to
    assert changed(before, after) == case.columns
    assert after["retry_count"] == case.retries
    if case.due is not None:
        assert seconds(after, plain) == pytest.approx(case.due, abs=5)
    if "last_processed" in case.columns:
        assert seconds(after, plain, "last_processed") == pytest.approx(0, abs=5)
    assert plain.row(bystander) == beside
    assert len(plain.rows()) == 2


@pytest.mark.parametrize("act", [receive_and_fail, mark_retry, mark_failed])
def test_what_went_wrong_is_kept_with_the_message(bus, act):
    row_id = bus.insert(body_of(1))
    act(bus, row_id)
    assert "no paper" in bus.row(row_id)["error_info"]


def test_a_failed_receive_reports_the_type_the_message_and_the_stack(bus):
    row_id = bus.insert(body_of(1))
    receive_and_fail(bus, row_id)
    reported = bus.row(row_id)["error_info"]
    assert "Traceback" in reported and "Boom: no paper" in reported


def test_a_sent_message_is_ready_and_due_now(bus):
    bus.transport.send(ORDERS, placed(1))
    (row,) = bus.rows()
    assert row["subqueue"] == "I"
    assert (row["retry_count"], row["last_processed"], row["error_info"]) == (0, None, None)
    assert seconds(row, bus) == pytest.approx(0, abs=5)
    assert seconds(row, bus, "insert_time") == pytest.approx(0, abs=5)


@pytest.mark.parametrize("delay", [3600, 0.5, 0, -3600])
def test_a_delayed_message_waits_in_r_even_when_its_time_has_passed(bus, delay):
    bus.transport.send(ORDERS, placed(1, delay=timedelta(seconds=delay)))
    (row,) = bus.rows()
    assert row["subqueue"] == "R"
    assert (row["retry_count"], row["last_processed"], row["error_info"]) == (0, None, None)
    assert (row["retry_time"] - row["insert_time"]).total_seconds() == pytest.approx(delay, abs=0.02)


def test_a_claim_notes_the_due_time_and_its_lease_is_the_retry_time(bus):
    row_id = bus.insert(body_of(1), retry_time=-60)
    due = bus.row(row_id)["retry_time"]
    held = claim(bus, lease_seconds=100)
    (noted,) = bus.claimed()
    assert noted == {"claim_id": held.claim_id, "id": row_id, "due": due, "lease": bus.row(row_id)["retry_time"]}
    assert seconds(bus.row(row_id), bus) == pytest.approx(100, abs=5)


def test_a_message_whose_time_to_live_has_expired_is_marked_processed_without_being_seen(bus):
    past = {"msg_headers": "_NG-TTL=2001-01-01 00:00:00"}
    ids = [bus.insert(body_of(n), **past) for n in range(2)]
    before = [bus.row(one) for one in ids]
    with bus.transport.receive(ORDERS, 1) as batch:
        assert (len(batch), batch.expired) == (0, 2)
    after = [bus.row(one) for one in ids]
    assert [row["subqueue"] for row in after] == ["X", "X"]
    assert [changed(*pair) for pair in zip(before, after, strict=True)] == [{"subqueue", "last_processed"}] * 2


def test_a_claimed_message_whose_time_to_live_has_expired_is_processed_with_its_due_time(bus):
    row_id = bus.insert(body_of(1), msg_headers="_NG-TTL=2001-01-01 00:00:00", retry_time=-60)
    before = bus.row(row_id)
    assert claim(bus) is None
    assert changed(before, bus.row(row_id)) == {"subqueue", "last_processed"}
    assert bus.claimed() == []


@pytest.mark.parametrize(
    ("kept_from", "due", "processed", "deleted"),
    [
        ("due", -11 * DAY, 0, 1),
        ("due", -9 * DAY, 0, 0),
        ("processed", -11 * DAY, -11 * DAY, 1),
        ("processed", -11 * DAY, -1, 0),
    ],
)
def test_retention_deletes_processed_messages_only_after_ten_days(bus, kept_from, due, processed, deleted):
    other = bus.other(retention_from=kept_from)
    for subqueue in "XFIR":
        other.insert(body_of(1), subqueue=subqueue, retry_time=due)
    other.execute(f"UPDATE {other.table(ORDERS)} SET last_processed = {other.moment(processed)}")
    assert other.transport.purge(ORDERS) == deleted
    assert other.subqueues() == ("FIR" if deleted else "XFIR")


def test_retention_works_through_many_batches(bus):
    for _ in range(5):
        bus.insert(body_of(1), subqueue="X", retry_time=-11 * DAY)
    assert bus.transport.purge(ORDERS, batch=2) == 5
    assert bus.rows() == []


def test_the_schedulers_pass_works_through_many_batches(bus, orders):
    for n in range(5):
        bus.insert(body_of(n), **PAST)
    assert bus.transport.move_due(orders, batch=2) == 5
    assert bus.subqueues() == "IIIII"


def test_retrying_an_id_that_did_not_fail_does_nothing(bus, orders):
    row_id = bus.insert(body_of(1), subqueue="X")
    before = bus.row(row_id)
    assert bus.transport.nginn.retry_failed(orders, row_id) == 0
    assert bus.transport.nginn.discard_failed(orders, row_id) == 0
    assert bus.row(row_id) == before


def test_failed_messages_are_listed_and_can_be_discarded(bus, orders):
    first, second = (bus.insert(body_of(n), **FAILED) for n in range(2))
    listed = bus.transport.nginn.failed(orders)
    assert [(one.id, one.attempts, one.error) for one in listed] == [(first, 8, "no paper"), (second, 8, "no paper")]
    assert [one.id for one in bus.transport.nginn.failed(orders, after=first)] == [second]
    assert bus.transport.nginn.discard_failed(orders, first, 99) == 1
    assert [row["id"] for row in bus.rows()] == [second]
