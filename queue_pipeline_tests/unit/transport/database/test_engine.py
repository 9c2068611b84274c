"""How many connections an engine of ours opens, keeps and closes, and what a forked process does with them."""

import gc
import os
import sqlite3
import threading
import weakref

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from queue_pipeline.errors import DatabaseUnavailableError
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.engine import IDLE_CONNECTIONS
from queue_pipeline.transport.database.setting import database_url


class Referable(sqlite3.Connection):
    """One that can be referred to weakly."""


class Watched:
    """A database whose connections are counted."""

    def __init__(self, path):
        self.path = path
        self.database = Database(database_url(f"sqlite:///{path}"))
        self.engine = self.database.engine
        self.opened = []
        self.closed = []
        event.listen(self.engine, "do_connect", lambda *arguments: arguments[3].update(factory=Referable))
        event.listen(self.engine, "connect", lambda connection, record: self.opened.append(connection))
        event.listen(self.engine, "close", lambda connection, record: self.closed.append(connection))

    def take(self, count=1):
        return [self.engine.connect() for _ in range(count)]

    def used(self):
        """The driver's connection of the next transaction."""
        with self.database.transaction() as transaction:
            return driver_of(transaction.connection)


def driver_of(connection):
    return connection.connection.dbapi_connection


def give_back(connections):
    drivers = [driver_of(connection) for connection in connections]
    for connection in connections:
        connection.close()
    return drivers


@pytest.fixture
def watched(tmp_path):
    watched = Watched(tmp_path / "folder" / "queues.db")
    yield watched
    watched.database.close()


def test_nothing_is_opened_before_it_is_needed(watched):
    assert watched.opened == []
    assert not watched.path.parent.exists()


def test_a_connection_that_was_given_back_is_used_again(watched):
    assert watched.used() is watched.used()
    assert len(watched.opened) == 1


def test_the_one_used_last_is_used_next(watched):
    first, second = give_back(watched.take(2))
    assert [driver_of(connection) for connection in watched.take(2)] == [second, first]


def test_two_users_at_once_never_share_a_connection(watched):
    first, second = watched.take(2)
    assert driver_of(first) is not driver_of(second)


def test_a_dead_connection_is_replaced_without_an_error(watched):
    dead = watched.used()
    dead.close()
    assert watched.used() is not dead
    assert len(watched.opened) == 2


def test_dead_connections_are_replaced_however_many_there_are(watched):
    drivers = give_back(watched.take(4))
    for dead in drivers[1:]:
        dead.close()
    users = watched.take(4)
    assert {driver_of(user) for user in users}.isdisjoint(drivers[1:])
    for user in users:
        assert user.exec_driver_sql("SELECT 1").scalar_one() == 1


def test_a_database_that_cannot_be_opened_is_an_error_for_the_caller_and_is_tried_again(watched):
    watched.path.parent.write_text("a file where the folder should be")
    with pytest.raises(DatabaseUnavailableError, match="folder"):
        watched.used()
    watched.path.parent.unlink()
    assert watched.used() is watched.opened[0]


def test_only_a_few_unused_connections_stay_open(watched):
    drivers = give_back(watched.take(IDLE_CONNECTIONS + 3))
    assert len(set(drivers)) == IDLE_CONNECTIONS + 3
    assert watched.closed == drivers[IDLE_CONNECTIONS:]


def test_closing_closes_what_is_idle_and_the_database_can_still_be_used(watched):
    idle, busy = watched.take(2)
    (closed,) = give_back([idle])
    watched.database.close()
    assert watched.closed == [closed]
    assert busy.exec_driver_sql("SELECT 1").scalar_one() == 1
    assert watched.used() is watched.opened[2]


def test_every_connection_gets_the_session_once(watched):
    for _ in range(3):
        users = watched.take(2)
        assert {user.exec_driver_sql("PRAGMA journal_mode").scalar_one() for user in users} == {"wal"}
        give_back(users)
    assert len(watched.opened) == 2


def in_a_child(check):
    """Whether a forked process finds the check to hold."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if check() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_after_a_fork_the_parents_connections_are_neither_used_nor_closed(watched):
    inherited = watched.used()

    def check():
        own = watched.used()
        watched.database.close()
        # A closed one would raise.
        alive = inherited.execute("SELECT 1").fetchone() == (1,)
        return own is not inherited and watched.closed == [own] and alive

    assert in_a_child(check)
    assert watched.used() is inherited


def test_after_a_fork_the_pool_keeps_what_the_child_opened(watched):
    inherited = watched.used()
    assert in_a_child(lambda: watched.used() is watched.used() is not inherited)


def test_a_second_fork_works_like_the_first(watched):
    first = watched.used()

    def check():
        second = watched.used()
        return in_a_child(lambda: watched.used() not in (first, second))

    assert in_a_child(check)


def test_an_object_of_the_parent_lives_on_so_that_its_destructor_does_not_close_the_socket(watched):
    idle = weakref.ref(watched.used())
    watched.opened.clear()

    def check():
        watched.used()
        watched.database.close()
        gc.collect()
        return idle() is not None

    assert in_a_child(check)


def test_threads_share_the_engine_without_sharing_a_connection(watched):
    in_use, shared, lock = set(), [], threading.Lock()

    def work():
        for _ in range(100):
            with watched.engine.connect() as connection:
                driver = driver_of(connection)
                with lock:
                    if driver in in_use:
                        shared.append(driver)
                    in_use.add(driver)
                with lock:
                    in_use.discard(driver)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared == []
    assert len(watched.opened) <= 6


def test_a_query_of_sqlalchemy_that_the_server_refuses_breaks_no_engine(watched, monkeypatch):
    """It asks a new server about itself before any program has a connection, and ignores what is refused."""
    refused = []

    def ask(connection):
        with pytest.raises(OperationalError):
            connection.exec_driver_sql("SELECT nonsense FROM nowhere")
        refused.append(connection)

    monkeypatch.setattr(watched.engine.dialect, "initialize", ask)
    watched.used()
    assert len(refused) == 1
