"""SQLite: the file of a database, its folder, and the disk that it is on."""

import sqlite3
import subprocess
import sys
import threading

import pytest
from sqlalchemy import event

from queue_pipeline.errors import DatabaseUnavailableError
from queue_pipeline.transport import QueueTransport, new_message


def test_the_folder_of_a_sqlite_file_is_created_with_the_first_connection(tmp_path):
    path = tmp_path / "new" / "folder of it" / "queues.db"
    with QueueTransport(f"sqlite:///{path}") as transport:
        assert not path.parent.exists()
        transport.install("orders")
        assert path.exists()


def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with (
        QueueTransport(f"sqlite:///{tmp_path}/file/queues.db") as transport,
        pytest.raises(DatabaseUnavailableError, match=r"folder of .*file/queues\.db cannot be created.*another path"),
    ):
        transport.peek("orders")


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path):
    path = tmp_path / "queues.db"
    path.write_bytes(b"this is no SQLite file, however long it may be; " * 50)
    with (
        QueueTransport(f"sqlite:///{path}") as transport,
        pytest.raises(DatabaseUnavailableError, match="not a database"),
    ):
        transport.peek("orders")


def test_a_full_disk_is_not_the_fault_of_a_message(sqlite):
    transport = sqlite.transport()
    transport.install("orders")
    event.listen(
        transport.database.engine, "begin", lambda connection: connection.exec_driver_sql("PRAGMA max_page_count = 60")
    )
    with pytest.raises(DatabaseUnavailableError, match=r"orders.*disk is full"):
        transport.send("orders", new_message("x" * 5_000_000))
    assert transport.peek("orders") == 0


SEND = """
import sys
import threading
from queue_pipeline import QueueTransport, new_message
with QueueTransport(sys.argv[1]) as transport:
    transport.send("orders", new_message("by another process"))
"""


def test_a_second_transport_of_a_process_leaves_the_first_its_hold_on_the_file(sqlite):
    """SQLite holds its file by a lock of the process: without it, another process removes the log that is in use."""
    transport = sqlite.transport()
    transport.install("orders")
    with QueueTransport(sqlite.url) as second:
        assert second.peek("orders") == 0
    for number in (1, 2):
        subprocess.run([sys.executable, "-c", SEND, sqlite.url], check=True, timeout=60)
        assert transport.peek("orders") == number


def test_a_connection_waits_for_another_that_has_the_new_file_for_itself(tmp_path):
    """Two processes may start on a new file together; SQLite may then refuse at once, as it does without a time-out."""
    path = tmp_path / "queues.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.3, other.close)
    with QueueTransport(f"sqlite:///{path}?timeout=0") as transport:
        release.start()
        with transport.database.engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
    release.join()
