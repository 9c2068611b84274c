"""Victims of deadlocks and busy files: tried again without alarm, a few times and not for long."""

import logging
import sqlite3
import threading

import pytest
from sqlalchemy import text

from queue_pipeline.errors import TransientDatabaseError
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline.transport.database.command import Command

pytestmark = pytest.mark.both_drivers


@pytest.mark.parametrize("of_the_callers", [False, True], ids=["a statement of ours", "a statement of the caller's"])
def test_a_deadlock_victim_is_retried_without_alarm(postgresql, caplog, of_the_callers):
    transport = postgresql.transport()
    table = transport.book.own("pair").qualified
    postgresql.sql(transport, f"CREATE TABLE {table} (n int PRIMARY KEY, v int NOT NULL)")
    postgresql.sql(transport, f"INSERT INTO {table} VALUES (1, 0), (2, 0)")
    update = Command(f"UPDATE {table} SET v = v + 1 WHERE n = :n")

    def raise_value(transaction, number):
        if of_the_callers:
            transaction.connection.execute(text(update.text), {"n": number})
        else:
            transaction.execute(update, n=number)

    meet, tries = threading.Barrier(2), []

    def cross(first, second):
        met = []

        def work(transaction):
            tries.append(first)
            raise_value(transaction, first)
            if not met:
                met.append(True)
                meet.wait(20)
            raise_value(transaction, second)

        transport.database.run(work)

    threads = [threading.Thread(target=cross, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [tuple(row) for row in postgresql.sql(transport, f"SELECT v FROM {table}")] == [(2,), (2,)]
    assert len(tries) == 3
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def tries_of_a_victim(transport):
    tries = []

    def work(transaction):
        tries.append(transaction)
        raise TransientDatabaseError("again")

    with pytest.raises(TransientDatabaseError):
        transport.database.run(work)
    return len(tries)


def test_a_deadlock_victim_is_tried_six_times(backend, transport, monkeypatch):
    monkeypatch.setattr("queue_pipeline.transport.database.database.time.sleep", lambda seconds: None)
    assert tries_of_a_victim(transport) == 6
    assert transport.database.engine.pool.checkedout() == 0


def test_a_deadlock_victim_that_has_waited_for_long_is_not_tried_again(backend, transport, monkeypatch):
    monkeypatch.setattr("queue_pipeline.transport.database.database.PATIENCE_SECONDS", 0.0)
    assert tries_of_a_victim(transport) == 1


def test_a_busy_sqlite_file_is_a_transient_error(sqlite, monkeypatch):
    monkeypatch.setattr("queue_pipeline.transport.database.database.TRIES", 2)
    setting = sqlite.url + "?timeout=0.01"
    with QueueTransport(setting) as transport:
        transport.install("orders")
        other = sqlite3.connect(transport.database.url.database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TransientDatabaseError):
            transport.send("orders", new_message("{}"))
        assert transport.peek("orders") == 0
        other.execute("ROLLBACK")
        other.close()
        assert transport.send("orders", new_message("{}")) == 1
