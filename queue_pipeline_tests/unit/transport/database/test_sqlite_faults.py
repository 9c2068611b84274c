"""Errors of SQLite: what kind of fault they are. They are real, because they carry codes that cannot be made up."""

import sqlite3
from pathlib import Path

import pytest

from queue_pipeline.transport.database.dialects.sqlite import Sqlite
from queue_pipeline.transport.database.faults import Fault


def sqlite_error(work) -> sqlite3.Error:
    with pytest.raises(sqlite3.Error) as caught:
        work()
    return caught.value


def test_a_missing_table_of_sqlite_is_distinguished():
    connection = sqlite3.connect(":memory:")
    assert Sqlite().fault(sqlite_error(lambda: connection.execute("DELETE FROM orders"))) is Fault.MISSING_TABLE
    connection.close()


@pytest.mark.parametrize(
    "statement", ["SELECT colour FROM orders", "INSERT INTO orders (colour) VALUES (1)", "UPDATE orders SET colour = 1"]
)
def test_a_missing_column_of_sqlite_is_distinguished(statement):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE orders (Id TEXT)")
    assert Sqlite().fault(sqlite_error(lambda: connection.execute(statement))) is Fault.MISSING_COLUMN
    connection.close()


def test_a_merge_without_a_unique_index_is_distinguished():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a)")
    merge = "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING"
    assert Sqlite().fault(sqlite_error(lambda: connection.execute(merge))) is Fault.NO_UNIQUE_INDEX
    connection.close()


def test_a_full_disk_under_sqlite_is_not_the_fault_of_a_message(tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "queues.db", isolation_level=None)
    connection.execute("CREATE TABLE t (a)")
    connection.execute("PRAGMA max_page_count = 4")
    error = sqlite_error(lambda: connection.execute("INSERT INTO t VALUES (zeroblob(1000000))"))
    assert error.sqlite_errorcode == sqlite3.SQLITE_FULL
    assert Sqlite().fault(error) is Fault.RESOURCES
    connection.close()


def test_a_damaged_sqlite_file_is_not_the_fault_of_a_message(tmp_path: Path):
    path = tmp_path / "queues.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 100)
    connection.commit()
    connection.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * 8192 + whole[12288:])
    connection = sqlite3.connect(path)
    error = sqlite_error(lambda: connection.execute("SELECT sum(length(a)) FROM t").fetchall())
    assert error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT
    assert Sqlite().fault(error) is Fault.RESOURCES
    connection.close()


def test_what_already_exists_in_sqlite_is_distinguished():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE orders (Id TEXT)")
    for statement in ("CREATE TABLE orders (Id TEXT)", "ALTER TABLE orders ADD COLUMN Id TEXT"):
        assert Sqlite().fault(sqlite_error(lambda s=statement: connection.execute(s))) is Fault.EXISTS
    connection.close()


def test_a_busy_sqlite_database_asks_for_another_attempt(tmp_path: Path):
    path = tmp_path / "queues.db"
    holder, other = (sqlite3.connect(path, timeout=0, isolation_level=None) for _ in range(2))
    holder.execute("BEGIN IMMEDIATE")
    assert Sqlite().fault(sqlite_error(lambda: other.execute("BEGIN IMMEDIATE"))) is Fault.VICTIM
    holder.close()
    other.close()


def test_a_sqlite_file_that_may_not_be_written_is_a_matter_of_rights(tmp_path: Path):
    path = tmp_path / "queues.db"
    sqlite3.connect(path).close()
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert Sqlite().fault(sqlite_error(lambda: connection.execute("CREATE TABLE t (a)"))) is Fault.PERMISSION
    connection.close()


def test_a_file_that_is_no_database_or_does_not_exist_cannot_be_reached(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("no database at all, but long enough to be read as a header" * 20)
    connection = sqlite3.connect(path)
    assert Sqlite().fault(sqlite_error(lambda: connection.execute("SELECT * FROM t"))) is Fault.CONNECTION
    connection.close()
    missing = tmp_path / "missing" / "queues.db"
    assert Sqlite().fault(sqlite_error(lambda: sqlite3.connect(missing))) is Fault.CONNECTION


def test_a_closed_sqlite_connection_is_gone():
    connection = sqlite3.connect(":memory:")
    connection.close()
    assert Sqlite().fault(sqlite_error(lambda: connection.execute("SELECT 1"))) is Fault.CONNECTION


def test_other_errors_of_sqlite_are_other_errors():
    connection = sqlite3.connect(":memory:")
    assert Sqlite().fault(sqlite_error(lambda: connection.execute("SELEKT"))) is Fault.OTHER
    connection.close()
