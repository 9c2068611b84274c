"""The databases that the integration suite runs on, and what each of them can do."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, text

from queue_pipeline.transport.transport import QueueTransport

SQLSERVER_VARIABLE = "QUEUE_PIPELINE_TEST_SQLSERVER"
DRIVER_VARIABLE = "QUEUE_PIPELINE_TEST_POSTGRESQL_DRIVER"
PYODBC = "pyodbc"
PSYCOPG = "psycopg"


def chosen_driver() -> str:
    """The driver over which the suite speaks to PostgreSQL."""
    driver = os.environ.get(DRIVER_VARIABLE) or PSYCOPG
    if driver not in (PSYCOPG, PYODBC):
        raise ValueError(f"{DRIVER_VARIABLE} is {driver!r}; it can be {PSYCOPG} or {PYODBC}")
    return driver


def backend_names(*, both_drivers: bool = False, psycopg_only: bool = False) -> list[str]:
    """SQLite and PostgreSQL always, a T-SQL server where one is named."""
    if psycopg_only:
        return [PSYCOPG]
    names = ["sqlite", *postgresql_names(both_drivers=both_drivers)]
    return names + (["sqlserver"] if os.environ.get(SQLSERVER_VARIABLE) else [])


def postgresql_names(*, both_drivers: bool = False) -> list[str]:
    """PostgreSQL over the driver that was chosen; over both where a module asks for them."""
    return ["postgresql", PYODBC] if both_drivers and chosen_driver() == PSYCOPG else ["postgresql"]


@dataclass
class Backend:
    """One database with a schema of the test's own."""

    name: str
    url: str = field(repr=False)
    schema: str | None
    is_babelfish: bool = False
    closers: list[Callable[[], None]] | None = None

    def transport(self, **options: Any) -> QueueTransport:
        """A transport in the test's schema; closed at the end of the test."""
        transport = QueueTransport(self.url, **{"schema": self.schema, **options})
        if self.closers is not None:
            self.closers.append(transport.close)
        return transport

    @property
    def skips_locked_rows(self) -> bool:
        """Whether a receiver passes over rows that another holds."""
        return self.name != "sqlite" and not self.is_babelfish

    def sql(self, transport: QueueTransport, statement: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """Run a statement of the test's own, committed at once; its question marks are the parameters, in order."""
        with transport.transaction() as connection:
            return run_sql(connection, statement, parameters)


def run_sql(connection: Connection, statement: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
    """Run a statement of a test's own; a question mark is a parameter, except where none are given."""
    values: dict[str, Any] = {}
    if parameters:
        head, *parts = statement.replace(":", r"\:").split("?")
        statement = head
        for number, (value, part) in enumerate(zip(parameters, parts, strict=True)):
            statement += f":value_{number}{part}"
            values[f"value_{number}"] = value
    else:
        statement = statement.replace(":", r"\:")
    result = connection.execute(text(statement), values)
    return list(result.fetchall()) if result.returns_rows else []
