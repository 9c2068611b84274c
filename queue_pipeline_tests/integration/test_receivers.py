"""Receivers: places in a queue that are counted in the database, so that no machine has one too many."""

import pytest

from queue_pipeline.transport import InstallOptions
from queue_pipeline.transport.errors import ConfigurationError, TableNotFoundError
from queue_pipeline.transport.operations.slots import Places
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.command_line import CommandLine
from queue_pipeline_tests.support.elapsed import end_leases
from queue_pipeline_tests.support.receivers import LEASE, table_of


@pytest.fixture
def orders(transport):
    return transport.resolve("orders")


@pytest.fixture
def take(transport, orders):
    def take(owner, wanted=1, most=2, lease=LEASE, queue=orders):
        return transport.receivers.take(queue, owner, wanted, most, lease)

    return take


def places(backend, transport):
    """Every place that somebody has, whatever its lease."""
    return sorted(
        (place, owner)
        for place, owner in backend.sql(transport, f"SELECT Place, Owner FROM {table_of(transport)} WHERE Place > 0")
    )


# --- taking -------------------------------------------------------------------------------------------------


def test_no_receiver_is_at_work_at_first(transport, orders):
    assert transport.receivers.list() == []
    assert transport.receivers.held(orders) == {}


def test_places_are_taken_until_there_are_none(take, transport, orders, backend):
    assert (take("a", 1, most=3), take("b", 5, most=3), take("c", 1, most=3)) == (1, 2, 0)
    assert backend.transport().receivers.held(orders) == {"a": 1, "b": 2}
    assert places(backend, transport) == [(1, "a"), (2, "b"), (3, "b")]


def test_an_owner_that_asks_again_keeps_what_it_has_and_may_get_more(take, transport, orders):
    assert [take("a", wanted, most=3) for wanted in (2, 2, 3, 5, 1)] == [2, 2, 3, 3, 3]
    assert transport.receivers.held(orders) == {"a": 3}


def test_asking_again_renews(take, transport):
    take("a", lease=10)
    take("a", lease=900)
    (receiver,) = transport.receivers.list()
    assert 800 < receiver.lease_seconds <= 900


def test_every_queue_has_places_of_its_own(take, transport, orders):
    transport.install("returns")
    returns = transport.resolve("returns")
    assert (take("a", 2), take("a", 2, queue=returns), take("b"), take("b", queue=returns)) == (2, 2, 0, 0)
    transport.receivers.release(orders, "a")
    assert (take("b", 2), take("b", 2, queue=returns)) == (2, 0)
    assert [(one.queue, one.owner, one.places) for one in transport.receivers.list()] == [
        (orders.canonical, "b", 2),
        (returns.canonical, "a", 2),
    ]
    assert [one.queue for one in transport.receivers.list(returns)] == [returns.canonical]


def test_places_above_a_limit_that_was_lowered_count_until_they_are_free(take, transport, orders, backend):
    assert (take("first", 2, most=4), take("old", 2, most=4)) == (2, 2)
    transport.receivers.release(orders, "first")
    assert places(backend, transport) == [(3, "old"), (4, "old")]
    assert take("new", 2, most=2) == 0
    assert take("old", 2, most=2) == 2
    transport.receivers.release(orders, "old", keep=1)
    assert take("new", 2, most=2) == 1
    assert places(backend, transport) == [(1, "new"), (3, "old")]
    transport.receivers.release(orders, "old")
    assert take("new", 2, most=2) == 2
    assert places(backend, transport) == [(1, "new"), (2, "new")]


@pytest.mark.parametrize(("owner", "lease"), [("", 10), ("x" * 201, 10), ("a", 0), ("a", 90_000)])
def test_what_the_table_could_not_hold_is_refused(take, transport, owner, lease):
    with pytest.raises(ConfigurationError, match="orders"):
        take(owner, lease=lease)
    assert transport.receivers.list() == []


# --- leases -------------------------------------------------------------------------------------------------


def test_a_place_whose_lease_ran_out_is_free(take, transport, orders, backend):
    take("dead", 2)
    assert take("b") == 0
    end_leases(backend, transport, "dead")
    assert transport.receivers.held(orders) == {}
    assert take("b", 2) == 2
    assert transport.receivers.renew(orders, "dead", LEASE) == 0
    assert transport.receivers.held(orders) == {"b": 2}


def test_a_place_is_held_for_longer_when_it_is_renewed(take, transport, orders):
    take("a", 2, lease=10)
    take("b", most=3, lease=10)
    assert transport.receivers.renew(orders, "a", 900) == 2
    leases = {one.owner: one.lease_seconds for one in transport.receivers.list()}
    assert 800 < leases["a"] <= 900
    assert 0 < leases["b"] <= 10


def test_an_owner_that_renews_late_keeps_the_places_that_no_other_took(take, transport, orders, backend):
    take("late", 2)
    end_leases(backend, transport, "late")
    assert transport.receivers.renew(orders, "late", LEASE) == 2
    assert take("b") == 0


def test_an_owner_that_comes_back_after_its_lease_counts_itself_once(take, transport, orders, backend):
    take("a", 2)
    end_leases(backend, transport, "a")
    assert take("a", 2) == 2
    assert len(places(backend, transport)) == 2


# --- giving back --------------------------------------------------------------------------------------------


def test_an_owner_gives_back_all_or_some(take, transport, orders):
    take("a", 3, most=4)
    take("b", 1, most=4)
    transport.receivers.release(orders, "a", keep=5)
    assert transport.receivers.held(orders) == {"a": 3, "b": 1}
    transport.receivers.release(orders, "a", keep=1)
    assert transport.receivers.held(orders) == {"a": 1, "b": 1}
    transport.receivers.release(orders, "a")
    transport.receivers.release(orders, "a")
    assert transport.receivers.held(orders) == {"b": 1}


def test_an_owner_that_ended_gives_back_everything_everywhere(take, transport, orders):
    transport.install("returns")
    returns = transport.resolve("returns")
    take("a", 2)
    take("a", 1, queue=returns)
    take("b", 1, queue=returns)
    assert transport.receivers.release_owner("a") == 3
    assert transport.receivers.release_owner("a") == 0
    assert [one.owner for one in transport.receivers.list()] == ["b"]
    assert take("c", 2) == 2


# --- ending -------------------------------------------------------------------------------------------------


def test_an_owner_notes_why_it_takes_no_further_batch_and_the_first_reason_stays(take, transport, orders):
    take("a", 2, most=3)
    take("b", 1, most=3)
    own = Places(transport.receivers, orders, "a", 3, LEASE)
    own.take(2)
    assert own.ending() is None
    transport.receivers.end(orders, "a", "its code changed")
    own.end("the queue is paused")
    assert own.ending() == "its code changed"
    assert [(one.owner, one.places, one.ending) for one in transport.receivers.list(orders)] == [
        ("a", 2, "its code changed"),
        ("b", 1, None),
    ]


def test_a_reason_that_is_too_long_is_cut(take, transport, orders):
    take("a")
    transport.receivers.end(orders, "a", "x" * 1_000)
    (receiver,) = transport.receivers.list(orders)
    assert receiver.ending == "x" * 400


def test_a_receiver_is_listed_with_the_time_since_it_took_its_first_place(take, transport, orders, backend):
    take("a", 1)
    earlier = {
        "sqlite": "TakenAt = TakenAt - 90000",
        "postgresql": "taken_at = taken_at - interval '90 seconds'",
        "sqlserver": "TakenAt = DATEADD(second, -90, TakenAt)",
    }[backend.name]
    backend.sql(transport, f"UPDATE {table_of(transport)} SET {earlier}")
    take("a", 2)
    (receiver,) = transport.receivers.list(orders)
    assert 90 <= receiver.since_seconds < 150


# --- installations ------------------------------------------------------------------------------------------


def test_a_missing_table_is_an_error_that_says_how_to_create_it(transport, backend, orders, take):
    backend.sql(transport, f"DROP TABLE {table_of(transport)}")
    for act in (
        lambda: take("a", 2),
        lambda: transport.receivers.renew(orders, "a", LEASE),
        lambda: transport.receivers.release_owner("a"),
        lambda: transport.receivers.list(),
    ):
        with pytest.raises(TableNotFoundError, match=r"(?i)queuereceivers.*: queue-pipeline install QUEUE"):
            act()
    assert any(installed.created for installed in transport.install("orders"))
    assert (take("a", 2), take("b", 2)) == (2, 0)


def test_an_account_of_run_time_may_take_and_release(postgres, postgresql):
    role = f"receiver_{postgresql.schema}"
    postgres.run_sql(f"CREATE ROLE {role} LOGIN PASSWORD 'pw'")
    postgresql.transport().install("orders", options=InstallOptions(grant_to=role))
    with QueueTransport(postgres.url(user=role, password="pw"), schema=postgresql.schema) as runtime:
        orders = runtime.resolve("orders")
        assert runtime.receivers.take(orders, "a", 2, 2, LEASE) == 2
        assert runtime.receivers.renew(orders, "a", LEASE) == 2
        assert runtime.receivers.release_owner("a") == 2


# --- the command line ---------------------------------------------------------------------------------------


def test_an_operator_sees_who_is_at_work(backend, transport, orders, take):
    cli = CommandLine(backend)
    assert cli("receivers").out == "no receiver is at work\n"
    take("run a", 2, most=4)
    take("run b", 1, most=4)
    listed = cli("receivers", "orders").out
    assert listed.split()[:7] == ["queue", "owner", "places", "for", "lease", "takes", "more"]
    assert "run a" in listed and "run b" in listed
    document = cli("receivers", "--json").json["receivers"]
    assert [(each["queue"], each["owner"], each["places"]) for each in document] == [
        (orders.canonical, "run a", 2),
        (orders.canonical, "run b", 1),
    ]
    assert all(0 < each["lease_seconds"] <= LEASE for each in document)
    assert cli("receivers", "returns", "--json").json == {"receivers": []}
