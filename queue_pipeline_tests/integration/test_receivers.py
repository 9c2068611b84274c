"""Receivers: places in a queue that are counted in the database, so that no machine has one too many."""

import multiprocessing
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine

from queue_pipeline.transport import InstallOptions, new_message
from queue_pipeline.transport.errors import ConfigurationError, DatabaseUnavailableError, TableNotFoundError
from queue_pipeline.transport.receivers import Places
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.command_line import CommandLine

LEASE = 300.0


@pytest.fixture
def orders(transport):
    return transport.resolve("orders")


@pytest.fixture
def take(transport, orders):
    def take(owner, wanted=1, most=2, lease=LEASE, queue=orders):
        return transport.receivers.take(queue, owner, wanted, most, lease)

    return take


def table_of(transport):
    return transport.book.own("QueueReceivers").qualified


def places(backend, transport):
    """Every place that somebody has, whatever its lease."""
    return sorted(
        (place, owner)
        for place, owner in backend.sql(transport, f"SELECT Place, Owner FROM {table_of(transport)} WHERE Place > 0")
    )


def let_the_lease_be_over(backend, transport, owner):
    past = {
        "sqlite": "LeaseUntil = 0",
        "postgresql": "lease_until = now() - interval '1 second'",
        "sqlserver": "LeaseUntil = DATEADD(second, -1, SYSUTCDATETIME())",
    }[backend.name]
    backend.sql(transport, f"UPDATE {table_of(transport)} SET {past} WHERE Owner = ?", (owner,))


# --- taking ------------------------------------------------------------------------------------------------


def test_nobody_is_at_work_at_first(transport, orders):
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


# --- leases ------------------------------------------------------------------------------------------------


def test_a_place_whose_lease_ran_out_is_free(take, transport, orders, backend):
    take("dead", 2)
    assert take("b") == 0
    let_the_lease_be_over(backend, transport, "dead")
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


def test_who_renews_late_keeps_what_nobody_took(take, transport, orders, backend):
    take("late", 2)
    let_the_lease_be_over(backend, transport, "late")
    assert transport.receivers.renew(orders, "late", LEASE) == 2
    assert take("b") == 0


def test_an_owner_that_comes_back_after_its_lease_counts_itself_once(take, transport, orders, backend):
    take("a", 2)
    let_the_lease_be_over(backend, transport, "a")
    assert take("a", 2) == 2
    assert len(places(backend, transport)) == 2


# --- giving back -------------------------------------------------------------------------------------------


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


# --- at the same time --------------------------------------------------------------------------------------

MOST = 3


class Census:
    """Counts who is at work from outside: raised after a place was taken, lowered before it is given back."""

    def __init__(self, number, lock, highest):
        self.number, self.lock, self.highest = number, lock, highest

    def change(self, by):
        with self.lock:
            self.number.value += by
            self.highest.value = max(self.highest.value, self.number.value)


def work(transport, owner, census, rounds, seed):
    """Take, look, give back, in changing numbers; returns what was seen whenever there were too many."""
    chance, receivers, orders = random.Random(seed), transport.receivers, transport.resolve("orders")
    too_many = []
    for _ in range(rounds):
        held = receivers.take(orders, owner, chance.randint(1, MOST), MOST, LEASE)
        census.change(held)
        live = receivers.held(orders)
        too_many += [live] if sum(live.values()) > MOST else []
        if held > 1 and chance.random() < 0.5:
            census.change(1 - held)
            receivers.release(orders, owner, keep=1)
            held = 1
        census.change(-held)
        receivers.release(orders, owner)
    return too_many


def some_above(transport):
    """Somebody who came when more were allowed, and is still at it in the places above."""
    receivers, orders = transport.receivers, transport.resolve("orders")
    assert receivers.take(orders, "first", MOST + 1, MOST + 2, LEASE) == MOST + 1
    assert receivers.take(orders, "old", 1, MOST + 2, LEASE) == 1
    receivers.release(orders, "first")
    return 1


@pytest.mark.parametrize("lowered", [False, True], ids=["", "after-the-limit-was-lowered"])
def test_however_many_ask_at_once_there_are_never_more_than_places(transport, backend, lowered):
    taken = some_above(transport) if lowered else 0
    census = Census(multiprocessing.Value("i", taken, lock=False), threading.Lock(), multiprocessing.Value("i", taken))
    threads, rounds = 6, 8 if backend.name == "sqlserver" else 25
    together = threading.Barrier(threads)

    def start(number):
        own = backend.transport()
        together.wait(timeout=30)
        return work(own, f"run {number}", census, rounds, number)

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(start, range(threads))) == [[]] * threads
    assert census.highest.value == MOST
    assert transport.receivers.held(transport.resolve("orders")) == ({"old": 1} if lowered else {})


def in_process(url, schema, number, census, together):
    with QueueTransport(url, schema=schema) as transport:
        transport.receivers.list()
        together.wait(60)
        assert work(transport, f"run {number}", census, 25, number) == []


def test_it_is_the_same_where_every_receiver_is_a_process(transport, backend):
    context = multiprocessing.get_context("spawn")
    census = Census(context.Value("i", 0, lock=False), context.Lock(), context.Value("i", 0, lock=False))
    together = context.Barrier(3)
    arguments = [(backend.url, backend.schema, number, census, together) for number in range(3)]
    children = [context.Process(target=in_process, args=each) for each in arguments]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert census.highest.value == MOST
    assert transport.receivers.list() == []


def test_of_several_who_want_the_last_place_one_gets_it(transport, backend, orders):
    own = [backend.transport() for _ in range(5)]
    together = threading.Barrier(len(own))

    def last(number):
        together.wait(timeout=30)
        return own[number].receivers.take(orders, f"run {number}", 1, 1, LEASE)

    for _ in range(3):
        with ThreadPoolExecutor(len(own)) as pool:
            assert sorted(pool.map(last, range(len(own)))) == [0, 0, 0, 0, 1]
        # The first ever on a queue make its row together, so let them be the first again.
        backend.sql(transport, f"DELETE FROM {table_of(transport)}")


def test_nobody_but_takers_waits_for_somebody_who_takes_places(transport, backend, needs_row_locks, orders, take):
    transport.send("orders", new_message("1"))
    take("b", most=3)
    gate = transport.database.dialect.statement("operations.slot_gate", receivers=transport.book.own("QueueReceivers"))
    with transport.database.transaction() as unfinished:
        unfinished.execute(gate, queue=orders.canonical)
        other = backend.transport()
        assert other.claim("orders", "b", 1).messages == 1
        assert other.receivers.renew(orders, "b", LEASE) == 1
        assert other.receivers.held(orders) == {"b": 1}
        assert other.receivers.release_owner("b") == 1


# --- an owner's own view -----------------------------------------------------------------------------------


def mine(transport, owner="a", most=2, lease=LEASE):
    return Places(transport.receivers, transport.resolve("orders"), owner, most, lease)


def test_an_owner_knows_what_it_has(transport, orders):
    first, second = mine(transport, "a"), mine(transport, "b")
    assert (first.held, first.take(2), first.held, second.take(1)) == (0, 2, 2, 0)
    assert second.refusal() == f"all 2 places of {orders} are taken by a (2)"
    first.keep(1)
    assert (first.held, second.take(1)) == (1, 1)
    first.release()
    second.release()
    assert (first.held, transport.receivers.list()) == (0, [])
    assert mine(transport, most=1).refusal() == f"the only place of {orders} is taken by others"


def test_an_owner_that_got_less_than_it_wanted_asks_again_after_a_second(transport, monkeypatch):
    now = clock(monkeypatch)
    first, second = mine(transport, "a"), mine(transport, "b")
    assert (first.take(1), second.take(2)) == (1, 1)
    first.release()
    assert second.take(2) == 1
    now.seconds += 1.0
    assert second.take(2) == 2


def test_an_owner_relies_on_nothing_once_its_lease_is_over(transport, backend, monkeypatch, caplog):
    now = clock(monkeypatch)
    first, second = mine(transport, "a"), mine(transport, "b")
    first.take(2)
    now.seconds += LEASE - 1
    first.renew()
    now.seconds += LEASE - 1
    assert first.held == 2
    now.seconds += 1
    assert first.held == 0
    let_the_lease_be_over(backend, transport, "a")
    assert second.take(1) == 1
    first.renew()
    assert first.held == 0
    assert "2 of 2 places of" in caplog.text
    assert first.take(2) == 1


def test_a_database_that_is_away_does_not_keep_an_owner_from_ending(sqlite, caplog):
    mine(QueueTransport(create_engine(sqlite.url, creator=_nobody))).release()
    assert "wait for their lease: nobody answers" in caplog.text


def _nobody():
    raise DatabaseUnavailableError("nobody answers")


class Clock:
    seconds = 1_000.0


def clock(monkeypatch):
    now = Clock()
    monkeypatch.setattr("queue_pipeline.transport.receivers.time.monotonic", lambda: now.seconds)
    return now


# --- installations -----------------------------------------------------------------------------------------


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


# --- the command line --------------------------------------------------------------------------------------


def test_an_operator_sees_who_is_at_work(backend, transport, orders, take):
    cli = CommandLine(backend)
    assert cli("receivers").out == "nobody is at work\n"
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


# --- ending ------------------------------------------------------------------------------------------------


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
