"""The private PostgreSQL that everything is measured on: durable, with settings that the report states."""

from __future__ import annotations

import contextlib
import os
import platform
import sqlite3
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from tools.postgres_cluster import PostgresCluster

SETTINGS = {
    "shared_buffers": "160MB",
    "max_connections": "200",
    "synchronous_commit": "on",
    # Checkpoints and vacuums come between the measurements, where they are asked for, not inside of one.
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
}
STATED = ("fsync", "full_page_writes", "wal_level", *SETTINGS)
PACKAGES = (
    "queue_pipeline",
    "psycopg",
    "pydantic",
    "pyarrow",
    "pyspark",
    "dagster",
    "pgqueuer",
    "asyncpg",
)


@contextlib.contextmanager
def private_postgresql(**settings: str) -> Iterator[PostgresCluster]:
    """A server that writes what it commits to the disk; gone at the end."""
    with PostgresCluster(fsync=True, settings=SETTINGS | settings) as cluster:
        yield cluster


def stated_settings(connection: Any) -> dict[str, str]:
    """What the server says of itself, rather than what it was asked for."""
    return {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in STATED}


def versions(connection: Any) -> dict[str, str]:
    """What was measured, on what; a package of an extra that is not installed is left out."""
    installed = {one.metadata["Name"] for one in metadata.distributions()}
    return {
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in PACKAGES if package in installed},
        "postgresql": str(connection.execute("SHOW server_version").fetchone()[0]),
        "sqlite": sqlite3.sqlite_version,
        "platform": platform.platform(),
        "cpus": str(os.cpu_count()),
    }


def outside_transaction(connection: Any, statement: str) -> None:
    """Run what cannot run inside a transaction, such as a vacuum."""
    connection.autocommit = True
    connection.execute(statement)
    connection.autocommit = False


def wal_position(connection: Any) -> int:
    """How many bytes the server has logged by now."""
    row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    connection.commit()
    return int(row[0])
