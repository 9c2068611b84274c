"""What holds messages on a shared machine is private to its user, and what a killed process leaves is removed."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.spark.input import Handover
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline.transport.private_files import temporary_folder, user_folder, write_private_file
from queue_pipeline_tests.support.waiting import eventually
from tools.demo.workplace import Workplace
from tools.processes import Processes

BATCH = """
import contextlib, sys, time
import pyarrow as pa
from queue_pipeline.processing.spark import input as handover
with contextlib.ExitStack() as stack:
    print(handover._written(pa.table({"body": [b"a secret"] * 1000}), stack), flush=True)
    time.sleep(600)
"""


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture(autouse=True)
def open_handed():
    """A user whose files are readable by all users by default."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def temporary_files(tmp_path, monkeypatch):
    place = tmp_path / "temporary files"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_a_sqlite_database_its_log_and_its_folders_are_private(tmp_path):
    with QueueTransport(f"sqlite:///{tmp_path}/new/folders/queues.db") as transport:
        transport.install("orders")
        transport.send("orders", new_message("{}"))
        assert {path.name: mode(path) for path in (tmp_path / "new/folders").iterdir()} == {
            "queues.db": 0o600,
            "queues.db-wal": 0o600,
            "queues.db-shm": 0o600,
        }
    assert [mode(tmp_path / name) for name in ("new", "new/folders")] == [0o700, 0o700]


def test_a_database_that_is_shared_on_purpose_keeps_its_mode(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o770)
    (folder / "queues.db").touch(mode=0o660)
    with QueueTransport(f"sqlite:///{folder}/queues.db") as transport:
        transport.install("orders")
    assert (mode(folder), mode(folder / "queues.db")) == (0o770, 0o660)


def test_a_batch_file_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(temporary_files):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", BATCH],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary_files)},
        )
        for _ in range(2)
    ]
    try:
        killed, living = (Path(process.stdout.readline().strip()) for process in processes)
        assert [mode(killed.parent), mode(killed)] == [0o700, 0o600]
        os.kill(processes[0].pid, signal.SIGKILL)
        processes[0].wait()
        assert killed.stat().st_size > 0
        Handover()
        assert (killed.parent.exists(), living.exists()) == (False, True)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    eventually(lambda: Handover() and not living.exists())


def test_files_of_others_with_similar_names_are_not_removed(temporary_files):
    (temporary_files / "queue_pipeline-batch-notes").write_text("mine")
    (temporary_files / "queue_pipeline-pg-1").mkdir()
    with temporary_folder("queue_pipeline-batch-"):
        Handover()
        assert len(list(temporary_files.iterdir())) == 3


def test_the_folder_of_a_user_is_private_and_no_other_users(temporary_files):
    assert mode(user_folder()) == 0o700
    assert user_folder() == user_folder()
    user_folder().chmod(0o755)
    with pytest.raises(ConfigurationError, match="TMPDIR"):
        user_folder()


def test_a_symbolic_link_in_place_of_the_users_folder_is_refused(temporary_files, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (temporary_files / f"queue_pipeline-{os.geteuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="TMPDIR"):
        user_folder()


def test_a_secret_is_written_for_its_user_alone_also_over_a_file_that_was_open(tmp_path):
    path = tmp_path / "token"
    path.write_text("old")
    write_private_file(path, "new")
    assert (path.read_text(), mode(path)) == ("new", 0o600)


def test_the_demo_keeps_its_files_and_logs_private(tmp_path):
    place = Workplace(tmp_path / "project" / "demo")
    with place.occupied():
        place.prepare()
        processes = Processes(place.folder, os.environ)
        processes.start(["true"], place.log("dagster")).wait()
    folders = (place.folder.parent, place.folder, place.dagster_home, place.discovery.parent)
    assert [mode(folder) for folder in folders] == [0o700] * 4
    assert mode(place.log("dagster")) == 0o600
