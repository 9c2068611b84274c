"""Slots in a queue that are counted in the database, so that no machine has one too many."""

import pytest

from queue_pipeline.errors import ConfigurationError, TableNotFoundError
from queue_pipeline.transport import InstallOptions
from queue_pipeline.transport.operations.slots import RunSlots
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.command_line import CommandLine
from queue_pipeline_tests.support.databases.elapsed import end_leases
from queue_pipeline_tests.support.databases.slot_table import LEASE, table_of


@pytest.fixture
def orders(transport):
    return transport.resolve("orders")


@pytest.fixture
def take(transport, orders):
    def take(owner, wanted=1, most=2, lease=LEASE, queue=orders):
        return transport.slots.take(queue, owner, wanted, most, lease)

    return take


def slots(backend, transport):
    """Every slot that is taken, whatever its lease."""
    return sorted(
        (slot, owner)
        for slot, owner in backend.sql(transport, f"SELECT Slot, Owner FROM {table_of(transport)} WHERE Slot > 0")
    )


# --- taking -------------------------------------------------------------------------------------------------


def test_no_slot_is_held_at_first(transport, orders):
    assert transport.slots.list() == []
    assert transport.slots.held(orders) == {}


def test_slots_are_taken_until_there_are_none(take, transport, orders, backend):
    assert (take("a", 1, most=3), take("b", 5, most=3), take("c", 1, most=3)) == (1, 2, 0)
    assert backend.transport().slots.held(orders) == {"a": 1, "b": 2}
    assert slots(backend, transport) == [(1, "a"), (2, "b"), (3, "b")]


def test_an_owner_that_asks_again_keeps_what_it_has_and_may_get_more(take, transport, orders):
    assert [take("a", wanted, most=3) for wanted in (2, 2, 3, 5, 1)] == [2, 2, 3, 3, 3]
    assert transport.slots.held(orders) == {"a": 3}


def test_taking_a_slot_again_renews_its_lease(take, transport):
    take("a", lease=10)
    take("a", lease=900)
    (holder,) = transport.slots.list()
    assert 800 < holder.lease_seconds <= 900


def test_every_queue_has_slots_of_its_own(take, transport, orders):
    transport.install("returns")
    returns = transport.resolve("returns")
    assert (take("a", 2), take("a", 2, queue=returns), take("b"), take("b", queue=returns)) == (2, 2, 0, 0)
    transport.slots.release(orders, "a")
    assert (take("b", 2), take("b", 2, queue=returns)) == (2, 0)
    assert [(one.queue, one.owner, one.slots) for one in transport.slots.list()] == [
        (orders.canonical, "b", 2),
        (returns.canonical, "a", 2),
    ]
    assert [one.queue for one in transport.slots.list(returns)] == [returns.canonical]


def test_a_reason_that_holds_what_databases_refuse_is_noted_without_it(take, transport, orders):
    take("a")
    transport.slots.end(orders, "a", "not\0 \ud800here")
    (holder,) = transport.slots.list(orders)
    assert holder.ending in ("not \ufffdhere", "not ?here")


def test_slots_above_a_limit_that_was_lowered_count_until_they_are_free(take, transport, orders, backend):
    assert (take("first", 2, most=4), take("old", 2, most=4)) == (2, 2)
    transport.slots.release(orders, "first")
    assert slots(backend, transport) == [(3, "old"), (4, "old")]
    assert take("new", 2, most=2) == 0
    assert take("old", 2, most=2) == 2
    transport.slots.release(orders, "old", keep=1)
    assert take("new", 2, most=2) == 1
    assert slots(backend, transport) == [(1, "new"), (3, "old")]
    transport.slots.release(orders, "old")
    assert take("new", 2, most=2) == 2
    assert slots(backend, transport) == [(1, "new"), (2, "new")]


@pytest.mark.parametrize(("owner", "lease"), [("", 10), ("x" * 201, 10), ("a", 0), ("a", 90_000)])
def test_what_the_table_could_not_hold_is_refused(take, transport, owner, lease):
    with pytest.raises(ConfigurationError, match="orders"):
        take(owner, lease=lease)
    assert transport.slots.list() == []


# --- leases -------------------------------------------------------------------------------------------------


def test_a_slot_whose_lease_ran_out_is_free(take, transport, orders, backend):
    take("dead", 2)
    assert take("b") == 0
    end_leases(backend, transport, "dead")
    assert transport.slots.held(orders) == {}
    assert take("b", 2) == 2
    assert transport.slots.renew(orders, "dead", LEASE) == 0
    assert transport.slots.held(orders) == {"b": 2}


def test_a_slot_is_held_for_longer_when_it_is_renewed(take, transport, orders):
    take("a", 2, lease=10)
    take("b", most=3, lease=10)
    assert transport.slots.renew(orders, "a", 900) == 2
    leases = {one.owner: one.lease_seconds for one in transport.slots.list()}
    assert 800 < leases["a"] <= 900
    assert 0 < leases["b"] <= 10


def test_an_owner_that_renews_late_keeps_the_slots_that_no_other_took(take, transport, orders, backend):
    take("late", 2)
    end_leases(backend, transport, "late")
    assert transport.slots.renew(orders, "late", LEASE) == 2
    assert take("b") == 0


def test_an_owner_that_comes_back_after_its_lease_counts_itself_once(take, transport, orders, backend):
    take("a", 2)
    end_leases(backend, transport, "a")
    assert take("a", 2) == 2
    assert len(slots(backend, transport)) == 2


# --- giving back --------------------------------------------------------------------------------------------


def test_an_owner_gives_back_all_or_some(take, transport, orders):
    take("a", 3, most=4)
    take("b", 1, most=4)
    transport.slots.release(orders, "a", keep=5)
    assert transport.slots.held(orders) == {"a": 3, "b": 1}
    transport.slots.release(orders, "a", keep=1)
    assert transport.slots.held(orders) == {"a": 1, "b": 1}
    transport.slots.release(orders, "a")
    transport.slots.release(orders, "a")
    assert transport.slots.held(orders) == {"b": 1}


def test_an_owner_that_ended_gives_back_everything_everywhere(take, transport, orders):
    transport.install("returns")
    returns = transport.resolve("returns")
    take("a", 2)
    take("a", 1, queue=returns)
    take("b", 1, queue=returns)
    assert transport.slots.release_owner("a") == 3
    assert transport.slots.release_owner("a") == 0
    assert [one.owner for one in transport.slots.list()] == ["b"]
    assert take("c", 2) == 2


# --- ending -------------------------------------------------------------------------------------------------


def test_an_owner_notes_why_it_takes_no_further_batch_and_the_first_reason_stays(take, transport, orders):
    take("a", 2, most=3)
    take("b", 1, most=3)
    own = RunSlots(transport.slots, orders, "a", 3, LEASE)
    own.take(2)
    assert own.ending() is None
    transport.slots.end(orders, "a", "its code changed")
    own.end("the queue is paused")
    assert own.ending() == "its code changed"
    assert [(one.owner, one.slots, one.ending) for one in transport.slots.list(orders)] == [
        ("a", 2, "its code changed"),
        ("b", 1, None),
    ]


def test_a_reason_that_is_too_long_is_cut(take, transport, orders):
    take("a")
    transport.slots.end(orders, "a", "x" * 1_000)
    (holder,) = transport.slots.list(orders)
    assert holder.ending == "x" * 400


def test_a_receiver_is_listed_with_the_time_since_it_took_its_first_slot(take, transport, orders, backend):
    take("a", 1)
    earlier = {
        "sqlite": "TakenAt = TakenAt - 90000",
        "postgresql": "taken_at = taken_at - interval '90 seconds'",
        "sqlserver": "TakenAt = DATEADD(second, -90, TakenAt)",
    }[backend.name]
    backend.sql(transport, f"UPDATE {table_of(transport)} SET {earlier}")
    take("a", 2)
    (holder,) = transport.slots.list(orders)
    assert 90 <= holder.since_seconds < 150


# --- installations ------------------------------------------------------------------------------------------


def test_a_missing_table_is_an_error_that_says_how_to_create_it(transport, backend, orders, take):
    backend.sql(transport, f"DROP TABLE {table_of(transport)}")
    for act in (
        lambda: take("a", 2),
        lambda: transport.slots.renew(orders, "a", LEASE),
        lambda: transport.slots.release_owner("a"),
        lambda: transport.slots.list(),
    ):
        with pytest.raises(TableNotFoundError, match=r"(?i)queueslots.*: queue-pipeline install QUEUE"):
            act()
    assert any(installed.created for installed in transport.install("orders"))
    assert (take("a", 2), take("b", 2)) == (2, 0)


def test_an_account_of_run_time_may_take_and_release(postgres, postgresql):
    role = f"receiver_{postgresql.schema}"
    postgres.run_sql(f"CREATE ROLE {role} LOGIN PASSWORD 'pw'")
    postgresql.transport().install("orders", options=InstallOptions(grant_to=role))
    with QueueTransport(postgres.url(user=role, password="pw"), schema=postgresql.schema) as runtime:
        orders = runtime.resolve("orders")
        assert runtime.slots.take(orders, "a", 2, 2, LEASE) == 2
        assert runtime.slots.renew(orders, "a", LEASE) == 2
        assert runtime.slots.release_owner("a") == 2


# --- the command line ---------------------------------------------------------------------------------------


def test_an_operator_sees_the_active_receivers(backend, transport, orders, take):
    cli = CommandLine(backend)
    assert cli("slots").out == "no run holds a slot\n"
    take("run a", 2, most=4)
    take("run b", 1, most=4)
    listed = cli("slots", "orders").out
    assert listed.split()[:7] == ["queue", "owner", "slots", "for", "lease", "takes", "more"]
    assert "run a" in listed and "run b" in listed
    document = cli("slots", "--json").json["slots"]
    assert [(each["queue"], each["owner"], each["slots"]) for each in document] == [
        (orders.canonical, "run a", 2),
        (orders.canonical, "run b", 1),
    ]
    assert all(0 < each["lease_seconds"] <= LEASE for each in document)
    assert cli("slots", "returns", "--json").json == {"slots": []}
