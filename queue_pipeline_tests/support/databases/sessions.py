"""Sessions of a PostgreSQL server, by the process that serves each of them."""

import pytest

from queue_pipeline_tests.support.databases.backends import PSYCOPG, PYODBC

BOTH_DRIVERS = pytest.mark.parametrize("driver", [PSYCOPG, PYODBC])


def pid_of(connection):
    return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()


def backend_pid(transport):
    """The session that a transport uses next."""
    with transport.transaction() as connection:
        return pid_of(connection)


def kill(postgres, pid):
    """End a session, and wait until it is gone."""
    assert postgres.run_sql(f"SELECT pg_terminate_backend({pid}, 10000)") == "t"
