"""Claims that change hands: adopted one by one, released by owner, and counted while they have no holder."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from queue_pipeline.errors import ClaimLostError, ConfigurationError, QueueNotFoundError, TableNotFoundError
from queue_pipeline.transport import Operation, OutgoingMessage, new_message
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture
def orders(transport):
    return transport.resolve("orders")


@pytest.fixture
def claims(transport):
    return transport.claims


def send(transport, count, queue="orders"):
    transport.send(queue, [OutgoingMessage(str(n).encode(), {"n": str(n)}) for n in range(count)])


def adopt_when_over(claims, claim, owner):
    """Adopt a claim of which the caller knows the id but not the holder, as soon as its lease has expired."""
    return eventually(lambda: claims.adopt(replace(claim, owner="somebody", generation=99), owner))


# --- adopt -------------------------------------------------------------------------------------------------


def test_a_dead_holders_claim_is_adopted_before_its_lease_expires(transport, claims, orders):
    send(transport, 5)
    claim = claims.claim(orders, "run 1", 3)
    claims.begin(claim)
    adopted = claims.adopt(claim, "run 2", 60)
    assert adopted == replace(claim, owner="run 2", generation=2, isolated=True)
    (status,) = claims.list(orders)
    assert (status.owner, status.generation, status.messages) == ("run 2", 2, 3)
    assert 50 < status.lease_seconds <= 60 and status.age_seconds < 10
    assert [message.body for message in claims.messages(adopted)[0]] == [b"0", b"1", b"2"]


def test_a_released_claim_is_adopted_from_any_holder(transport, claims, orders):
    send(transport, 1)
    claim = claims.claim(orders, "run 1", 3)
    claims.release(claim)
    adopted = claims.adopt(replace(claim, owner="somebody", generation=99), "run 2")
    assert (adopted.claim_id, adopted.owner, adopted.generation) == (claim.claim_id, "run 2", 2)
    assert claims.complete(Completion(adopted, read=None)) == 0


def test_a_claim_with_an_expired_lease_is_adopted_from_any_holder(transport, claims, orders):
    send(transport, 1)
    claim = claims.claim(orders, "run 1", 3, lease_seconds=0.001)
    adopted = adopt_when_over(claims, claim, "run 2")
    assert (adopted.claim_id, adopted.owner, adopted.generation) == (claim.claim_id, "run 2", 2)


def test_an_adopted_claim_is_returned_in_its_current_state(transport, claims, orders):
    """Its size is the row's, not that of the value which the caller kept."""
    send(transport, 5)
    claim = claims.claim(orders, "run 1", 5)
    first, second = claims.split(claim, 2)
    adopted = claims.adopt(claim, "run 2")
    assert (adopted.messages, adopted.bytes) == (first.messages, first.bytes)
    assert claims.adopt(second, "run 2").first_row_version == second.first_row_version > first.first_row_version


def test_what_another_owner_holds_or_has_completed_is_not_adopted(transport, claims, orders):
    send(transport, 1)
    claim = claims.claim(orders, "run 1", 3)
    heir = claims.adopt(claim, "run 2")
    assert claims.adopt(claim, "run 3") is None
    assert claims.adopt(replace(claim, generation=2), "run 3") is None, "another owner at the same generation"
    assert claims.adopt(replace(heir, generation=1), "run 3") is None, "the owner at another generation"
    assert claims.list(orders)[0].owner == "run 2"
    claims.complete(Completion(heir, read=None))
    assert claims.adopt(heir, "run 3") is None
    assert claims.list() == []


def test_a_zombie_loses_what_was_adopted_even_under_its_own_name(transport, claims, orders):
    send(transport, 2)
    zombie = claims.claim(orders, "run", 2)
    heir = claims.adopt(zombie, "run")
    for act in (
        lambda: claims.complete(Completion(zombie, [Operation("orders", new_message("twice"))], read=None)),
        lambda: claims.renew(zombie),
        lambda: claims.release(zombie),
    ):
        with pytest.raises(ClaimLostError, match="no longer held"):
            act()
    assert transport.peek("orders") == 0
    assert claims.complete(Completion(heir, [Operation("orders", new_message("once"))], read=None)) == 1


def test_only_one_of_many_adopters_wins(transport, claims, orders):
    send(transport, 20)
    for _ in range(5):
        claim = claims.claim(orders, "dead", 4)
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda n, claim=claim: claims.adopt(claim, f"heir {n}"), range(4)))
        (winner,) = [each for each in found if each is not None]
        assert winner.generation == 2
        claims.complete(Completion(winner, read=None))


def test_adoption_and_completion_do_not_both_succeed(transport, claims, orders):
    """The holder that was thought dead completes at the same moment: its results are there exactly if it won."""
    transport.install("billing")
    send(transport, 10)
    sent = 0
    for _ in range(10):
        claim = claims.claim(orders, "slow", 1)

        def complete(claim=claim):
            try:
                return claims.complete(Completion(claim, [Operation("billing", new_message("x"))], read=None))
            except ClaimLostError:
                return 0

        with ThreadPoolExecutor(2) as threads:
            done, adopted = threads.submit(complete), threads.submit(claims.adopt, claim, "heir")
            assert (done.result() == 1) is (adopted.result() is None)
        sent += done.result()
        if adopted.result():
            sent += claims.complete(Completion(adopted.result(), [Operation("billing", new_message("x"))], read=None))
    assert sent == transport.peek("billing") == 10


@pytest.mark.parametrize(
    ("owner", "lease", "complaint"), [("", 60, "name"), ("x" * 201, 60, "name"), ("me", 0, "more than 0")]
)
def test_an_adoption_with_invalid_arguments_is_refused(transport, claims, orders, owner, lease, complaint):
    send(transport, 1)
    claim = claims.claim(orders, "me", 1)
    with pytest.raises(ConfigurationError, match=complaint) as raised:
        claims.adopt(claim, owner, lease)
    assert "orders" in str(raised.value)


def test_adopting_where_nothing_is_installed_names_the_queue(backend):
    transport = backend.transport()
    with pytest.raises(QueueNotFoundError, match="orders"):
        transport.claims.adopt(Claim(str(uuid.uuid4()), "orders", "me", 1, 1, 1, 1), "you")


# --- release_owner -----------------------------------------------------------------------------------------


def test_an_owner_is_released_everywhere_and_others_are_left_alone(transport, claims, orders):
    transport.install("billing")
    send(transport, 4)
    send(transport, 3, "billing")
    mine = [
        claims.claim(orders, "run 1", 2),
        claims.claim(transport.resolve("billing"), "run 1", 3),
    ]
    other = claims.claim(orders, "run 2", 2)
    released = claims.release_owner("run 1")
    assert sorted(released, key=lambda claim: claim.claim_id) == sorted(mine, key=lambda claim: claim.claim_id)
    assert claims.release_owner("run 1") == []
    assert {status.claim_id for status in claims.list() if status.owner is None} == {c.claim_id for c in mine}
    with pytest.raises(ClaimLostError):
        claims.complete(Completion(mine[0], read=None))
    assert claims.complete(Completion(other, read=None)) == 0
    assert claims.adopt(released[0], "run 3").generation == 2


def test_an_owner_without_claims_has_nothing_to_release(claims):
    assert claims.release_owner("nobody") == []


def test_an_owner_is_released_while_another_completes(transport, claims, orders, needs_row_locks):
    send(transport, 2)
    completing, failed = claims.claim(orders, "run 1", 1), claims.claim(orders, "run 2", 1)

    def meanwhile(_):
        with ThreadPoolExecutor(1) as thread:
            (released,) = thread.submit(claims.release_owner, "run 2").result(timeout=20)
        assert released == failed

    claims.complete(Completion(completing, work=meanwhile, read=None))


# --- waiting -----------------------------------------------------------------------------------------------


def test_messages_of_claims_without_a_holder_are_counted_by_queue(transport, claims, orders):
    transport.install("billing")
    billing = transport.resolve("billing")
    assert claims.waiting() == {}
    send(transport, 6)
    send(transport, 3, "billing")
    released, held = claims.claim(orders, "a", 2), claims.claim(orders, "b", 3)
    assert claims.waiting() == {}
    claims.release(released)
    assert claims.waiting() == {orders.canonical: 2}
    claims.claim(billing, "c", 3, lease_seconds=0.001)
    eventually(lambda: claims.waiting() == {orders.canonical: 2, billing.canonical: 3})
    claims.release(held)
    assert claims.waiting() == {orders.canonical: 5, billing.canonical: 3}
    claims.adopt(held, "d")
    assert claims.waiting() == {orders.canonical: 2, billing.canonical: 3}


def test_claims_that_were_never_installed_are_an_error_with_the_next_step(backend):
    with pytest.raises(TableNotFoundError, match="queue-pipeline install"):
        backend.transport().claims.waiting()


def test_counting_waiting_messages_does_not_wait_for_a_completion(transport, claims, orders):
    """The peek loop calls it every second, on every database, while claims are completed."""
    send(transport, 2)
    claims.release(claims.claim(orders, "a", 1))
    again = claims.claim(orders, "b", 1)

    def meanwhile(_):
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(claims.waiting).result(timeout=20) == {}

    claims.complete(Completion(again, work=meanwhile, read=None))
