"""Dagster's storage is locked while a run works: messages still flow."""

from __future__ import annotations

import functools
import sqlite3
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import dagster as dg
import pytest

from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.waiting import eventually


class LockedStorage:
    """Holds an exclusive lock on all databases of an instance; another writer would wait for a minute."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._locks = ExitStack()

    def take(self) -> None:
        files = list(self._home.rglob("*.db"))
        assert len(files) > 3, files
        for file in files:
            connection = self._locks.enter_context(closing(sqlite3.connect(file, check_same_thread=False)))
            connection.execute("PRAGMA busy_timeout = 10000")
            connection.execute("BEGIN EXCLUSIVE")

    def release(self) -> None:
        self._locks.close()


@pytest.fixture
def storage(home):
    locked = LockedStorage(home)
    yield locked
    locked.release()


def test_batches_go_on_while_dagsters_storage_is_locked(
    sqlite, warm: SparkResource, home: Path, storage: LockedStorage
):
    """The lock is taken after the first batch; the others are sent under it, and it is released when they are done."""
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    transport.send("orders", new_message("0"))

    def has_arrived(count: int) -> bool:
        return transport.peek("billing") == count

    def disturb() -> None:
        eventually(functools.partial(has_arrived, 1), seconds=60)
        storage.take()
        try:
            for number in range(1, 4):
                transport.send("orders", new_message(str(number)))
                eventually(functools.partial(has_arrived, number + 1), seconds=30)
                flowed.append(number)
        finally:
            storage.release()

    flowed: list[int] = []
    disturber = threading.Thread(target=disturb)
    definitions = dg.Definitions.merge(
        build_definitions([pipelines.declare(linger_seconds=3)], autostart=False),
        dg.Definitions(resources=pipelines.resources(sqlite, warm)),
    )
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        disturber.start()
        result = definitions.resolve_job_def("orders_pipeline").execute_in_process(instance=instance)
        disturber.join()
        assert flowed == [1, 2, 3]
        assert result.success
        lines = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert any(line.startswith("done: the queue is empty; 4 messages in 4 batches") for line in lines)
