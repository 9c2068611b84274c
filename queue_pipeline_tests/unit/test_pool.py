import os
import threading

import pytest

from queue_pipeline.transport.pool import MAX_IDLE, ConnectionPool


class FakeConnection:
    def __init__(self, number: int) -> None:
        self.number = number
        self.alive = True
        self.closed = 0
        self.breaks_on_close = False

    def close(self) -> None:
        self.closed += 1
        if self.breaks_on_close:
            raise OSError("the socket is gone")


class Server:
    """Opens fake connections and remembers them."""

    def __init__(self) -> None:
        self.opened: list[FakeConnection] = []
        self.refuses = False
        self.pool = ConnectionPool(self.open, lambda connection: connection.alive)

    def open(self) -> FakeConnection:
        if self.refuses:
            raise ConnectionError("refused")
        self.opened.append(FakeConnection(len(self.opened)))
        return self.opened[-1]


@pytest.fixture
def server() -> Server:
    return Server()


def test_nothing_is_opened_before_it_is_needed(server):
    assert server.opened == []


def test_a_connection_that_was_given_back_is_used_again(server):
    first = server.pool.take()
    server.pool.give_back(first)
    assert server.pool.take() is first
    assert len(server.opened) == 1


def test_the_one_used_last_is_used_next(server):
    first, second = server.pool.take(), server.pool.take()
    server.pool.give_back(first)
    server.pool.give_back(second)
    assert server.pool.take() is second
    assert server.pool.take() is first


def test_two_users_at_once_never_share_a_connection(server):
    assert server.pool.take() is not server.pool.take()


def test_a_dead_connection_is_closed_and_replaced(server):
    dead = server.pool.take()
    server.pool.give_back(dead)
    dead.alive = False
    replacement = server.pool.take()
    assert replacement is not dead
    assert replacement.alive
    assert dead.closed == 1


def test_a_living_connection_behind_dead_ones_is_found(server):
    connections = [server.pool.take() for _ in range(4)]
    for connection in connections:
        server.pool.give_back(connection)
    for connection in connections[1:]:
        connection.alive = False
    assert server.pool.take() is connections[0]
    assert [connection.closed for connection in connections] == [0, 1, 1, 1]
    assert len(server.opened) == 4


def test_a_connection_that_cannot_even_be_closed_is_dropped_in_silence(server):
    broken = server.pool.take()
    broken.breaks_on_close = True
    server.pool.discard(broken)
    assert broken.closed == 1
    assert server.pool.take() is not broken


def test_a_server_that_refuses_is_an_error_for_the_caller(server):
    server.refuses = True
    with pytest.raises(ConnectionError):
        server.pool.take()
    server.refuses = False
    assert server.pool.take() is server.opened[0]


def test_no_more_than_so_many_stay_open_unused(server):
    connections = [server.pool.take() for _ in range(MAX_IDLE + 3)]
    for connection in connections:
        server.pool.give_back(connection)
    assert [connection.closed for connection in connections] == [0] * MAX_IDLE + [1] * 3
    assert {server.pool.take() for _ in range(MAX_IDLE)} == set(connections[:MAX_IDLE])
    assert len(server.opened) == MAX_IDLE + 3


def test_closing_closes_what_is_idle_and_the_pool_can_still_be_used(server):
    idle, busy = server.pool.take(), server.pool.take()
    server.pool.give_back(idle)
    server.pool.close()
    assert (idle.closed, busy.closed) == (1, 0)
    assert server.pool.take() is server.opened[2]
    server.pool.close()
    assert idle.closed == 1


def test_after_a_fork_the_parents_connections_are_neither_used_nor_closed(server, monkeypatch):
    inherited = server.pool.take()
    server.pool.give_back(inherited)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    own = server.pool.take()
    assert own is not inherited
    server.pool.give_back(own)
    server.pool.close()
    assert (own.closed, inherited.closed) == (1, 0)


def test_after_a_fork_the_pool_keeps_what_the_child_opened(server, monkeypatch):
    server.pool.give_back(server.pool.take())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    own = server.pool.take()
    server.pool.give_back(own)
    assert server.pool.take() is own


def test_an_object_of_the_parent_lives_on_so_that_its_destructor_does_not_close_the_socket(server, monkeypatch):
    closed_by_destructor = []

    class Destructible(FakeConnection):
        def __del__(self) -> None:
            closed_by_destructor.append(self.number)

    pool = ConnectionPool(lambda: Destructible(1), lambda _: True)
    pool.give_back(pool.take())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    pool.close()
    assert closed_by_destructor == []


def test_threads_share_the_pool_without_sharing_a_connection(server):
    in_use: set[FakeConnection] = set()
    shared: list[FakeConnection] = []
    lock = threading.Lock()

    def work() -> None:
        for _ in range(200):
            connection = server.pool.take()
            with lock:
                if connection in in_use:
                    shared.append(connection)
                in_use.add(connection)
            with lock:
                in_use.discard(connection)
            server.pool.give_back(connection)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared == []
    assert len(server.opened) <= 6
