"""Removing history from Dagster's storage, beyond what its public methods remove.

`DagsterInstance.delete_run` leaves a run's tags and its database file on SQLite, and check results everywhere; for
events without a run, as a sensor makes them, Dagster has no method at all. All that knows Dagster's tables is here.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy as sa
from dagster._core.events import DagsterEventType
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    AssetEventTagsTable,
    SqlEventLogStorageTable,
)
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.schema import RunTagsTable
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage

WITHOUT_RUN = ""
"""The run of events that have none."""
PIECE = 500
"""Rows that are deleted in one transaction, so that others wait for a moment only."""

Connect = Callable[[], AbstractContextManager[sa.Connection]]


def remove_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Remove a run that is over: its events first, so that a process that dies here leaves nothing without a run."""
    events, runs = instance.event_log_storage, instance.run_storage
    events.delete_events(run_id)
    if isinstance(runs, SqlRunStorage):
        with runs.connect() as connection:
            connection.execute(RunTagsTable.delete().where(RunTagsTable.c.run_id == run_id))
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    # Values between its steps.
    shutil.rmtree(Path(instance.storage_directory()) / run_id, ignore_errors=True)
    instance.delete_run(run_id)
    if isinstance(events, SqliteEventLogStorage):
        file = Path(events.path_for_shard(run_id))
        for path in (file, *file.parent.glob(f"{file.name}-*")):
            path.unlink(missing_ok=True)


def remove_asset_events(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetKey], before: datetime, has_time: Callable[[], bool]
) -> int:
    """Remove observations and check results of assets from before a time, in UTC; returns how many rows.

    The newest of each kind stay, because Dagster shows them as the present state.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return 0
    places: list[Connect] = [storage.index_connection]
    if storage.is_run_sharded:
        places.append(lambda: storage.run_connection(WITHOUT_RUN))
    events, checks, removed = SqlEventLogStorageTable.c, AssetCheckExecutionsTable.c, 0
    for key in (key.to_string() for key in keys):
        for kind in (DagsterEventType.ASSET_OBSERVATION, DagsterEventType.ASSET_CHECK_EVALUATION):
            alike = [events.asset_key == key, events.dagster_event_type == kind.value]
            old = [*alike, events.run_id == WITHOUT_RUN, events.timestamp < before]
            for connect in places:
                removed += remove_rows(connect, SqlEventLogStorageTable, alike, old, has_time)
        with storage.index_connection() as connection:
            of_key = sa.select(checks.check_name).distinct().where(checks.asset_key == key)
            check_names = list(connection.execute(of_key).scalars())
        for name in check_names:
            alike = [checks.asset_key == key, checks.check_name == name]
            old = [*alike, checks.create_timestamp < before]
            removed += remove_rows(storage.index_connection, AssetCheckExecutionsTable, alike, old, has_time)
    return removed


def remove_rows(
    connect: Connect, table: sa.Table, alike: Sequence[Any], old: Sequence[Any], has_time: Callable[[], bool]
) -> int:
    """Delete old rows of a table in pieces, but the newest of those that are alike."""
    newest = sa.select(sa.func.max(table.c.id)).where(*alike).scalar_subquery()
    chosen = sa.select(table.c.id).where(*old, table.c.id < newest).order_by(table.c.id).limit(PIECE)
    removed = 0
    while has_time():
        with connect() as connection:
            ids = list(connection.execute(chosen).scalars())
            if ids and table is SqlEventLogStorageTable:
                connection.execute(AssetEventTagsTable.delete().where(AssetEventTagsTable.c.event_id.in_(ids)))
            if ids:
                connection.execute(table.delete().where(table.c.id.in_(ids)))
        removed += len(ids)
        if len(ids) < PIECE:
            break
    return removed
