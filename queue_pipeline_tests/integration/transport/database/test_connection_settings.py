"""What a setting says of a connection: its password, driver and options, and what errors say of them."""

import logging
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import text

from queue_pipeline.errors import (
    AccessDeniedError,
    ConfigurationError,
    DatabaseUnavailableError,
    DriverMissingError,
)
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES, Row
from queue_pipeline.transport.database.drivers import SqlServerDriver
from queue_pipeline_tests.support.databases.backends import PSYCOPG, PYODBC
from queue_pipeline_tests.support.databases.sessions import BOTH_DRIVERS


@BOTH_DRIVERS
@pytest.mark.parametrize("password", ["p;w}d{", "it's %41 =&?#+", "ünï \U0001f600", "{braces}", " spaces "])
def test_passwords_with_any_character_work_and_are_never_shown(postgres, password, driver):
    role = "odd_password"
    escaped = password.replace("'", "''")
    postgres.run_sql(f"DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN PASSWORD '{escaped}'")
    url = postgres.url(user=role, password="PLACEHOLDER", driver=driver)
    with QueueTransport(url.replace("PLACEHOLDER", quote(password, safe=""))) as transport:
        with transport.transaction() as connection:
            assert connection.exec_driver_sql("SELECT current_user").scalar_one() == role
        assert password not in repr(transport.settings) + str(transport.database)


def revealed(raised, caplog):
    """All that a person may see of an error: its text, those it came from, and the log."""
    texts, error = [caplog.text], raised.value
    while error is not None:
        texts += [str(error), repr(error)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(texts)


def odbc_setting(postgres, password, name="PostgreSQL Unicode"):
    port = postgres.url().rsplit(":", 1)[1].split("/")[0]
    pairs = f"DRIVER={{{name}}};SERVER=127.0.0.1;PORT={port};DATABASE=postgres;UID=queue_pipeline;PWD={password}"
    return f"postgresql+pyodbc:///?odbc_connect={quote(pairs, safe='')}"


@BOTH_DRIVERS
def test_a_wrong_password_is_a_clear_error_without_the_password(postgres, driver, caplog):
    caplog.set_level(logging.DEBUG)
    url = postgres.url(password="very-secret-guess", driver=driver)
    with QueueTransport(url) as transport, pytest.raises(AccessDeniedError, match="check user and password") as raised:
        transport.peek("orders")
    assert "very-secret-guess" not in revealed(raised, caplog)


def test_a_wrong_password_in_an_odbc_string_is_a_clear_error_without_it(postgres, caplog):
    caplog.set_level(logging.DEBUG)
    with (
        QueueTransport(odbc_setting(postgres, "very-secret-guess")) as transport,
        pytest.raises(AccessDeniedError, match="check user and password") as raised,
    ):
        transport.peek("orders")
    assert "very-secret-guess" not in revealed(raised, caplog)


@BOTH_DRIVERS
def test_a_database_that_does_not_exist_is_named(postgres, driver, caplog):
    with (
        QueueTransport(postgres.url("no_such_database", driver=driver)) as transport,
        pytest.raises(DatabaseUnavailableError, match=r"no_such_database.*check the name of the database") as raised,
    ):
        transport.peek("orders")
    assert postgres.password not in revealed(raised, caplog)


@BOTH_DRIVERS
@pytest.mark.parametrize("host", ["127.0.0.1:9", "no-such-host.invalid"])
def test_an_unreachable_server_is_a_clear_error(caplog, driver, host):
    caplog.set_level(logging.DEBUG)
    scheme = "postgresql+pyodbc" if driver == PYODBC else "postgresql"
    with (
        QueueTransport(f"{scheme}://user:s3cret@{host}/db") as transport,
        pytest.raises(DatabaseUnavailableError, match=f"{host}.*check that it runs") as raised,
    ):
        transport.peek("orders")
    assert "s3cret" not in revealed(raised, caplog)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("postgresql://user:s3cret@127.0.0.1:9/db?colour=blue", "colour"),
        ("postgresql://user:s3cret@127.0.0.1:9/db?driver=psycopg", "driver"),
        ("postgresql://user:s3cret@127.0.0.1:9/db?ReadOnly=1", "ReadOnly"),
        ("postgresql://user:s3cret@127.0.0.1:9/db?sslmode=sometimes", "sslmode"),
        ("postgresql://user:s3cret@127.0.0.1:9/db?connect_timeout=soon", "connect_timeout"),
        ("postgresql://user:s3cret@127.0.0.1:9/db?port=first", "port"),
        ("mssql://user:s3cret@127.0.0.1:9/db?Encrypt=sometimes", "Encrypt"),
    ],
)
def test_an_option_that_the_driver_cannot_use_is_named_without_the_password(setting, words, caplog):
    caplog.set_level(logging.DEBUG)
    if setting.startswith("mssql"):
        pytest.importorskip("mssql_python_odbc")
    with (
        QueueTransport(setting) as transport,
        pytest.raises(ConfigurationError, match=f"refuses an option of the setting: .*{words}") as raised,
    ):
        transport.peek("orders")
    assert "s3cret" not in revealed(raised, caplog)


def test_a_driver_and_its_options_can_be_chosen(postgres):
    """The driver is used, and options reach it: psqlodbc itself refuses to write on a read-only connection."""
    url = postgres.url(driver=PYODBC) + "?driver=PostgreSQL+Unicode"
    with QueueTransport(url) as transport, transport.transaction() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    with QueueTransport(f"{url}&ReadOnly=1") as transport, pytest.raises(DatabaseUnavailableError, match="readonly"):
        transport.peek("orders")


def test_options_of_libpq_reach_the_server(postgres):
    with (
        QueueTransport(f"{postgres.url(driver=PSYCOPG)}?application_name=shop&client_encoding=utf-8") as transport,
        transport.transaction() as connection,
    ):
        assert connection.exec_driver_sql("SHOW application_name").scalar_one() == "shop"
        assert connection.exec_driver_sql("SHOW client_encoding").scalar_one() == "UTF8"


def test_the_encoding_of_the_environment_changes_nothing(postgres, monkeypatch):
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with QueueTransport(postgres.url(driver=PSYCOPG)) as transport, transport.transaction() as connection:
        assert connection.execute(text("SELECT :t"), {"t": "\U0001f600"}).scalar_one() == "\U0001f600"


def test_an_odbc_string_reads_and_writes_long_messages(postgresql, postgres):
    """The options that we need are added where they are missing."""
    with QueueTransport(odbc_setting(postgres, postgres.password), schema=postgresql.schema) as transport:
        transport.install("orders")
        transport.send("orders", new_message(b"\x00" * 100_000, headers={"long": "x\n" * 50_000}))
        with transport.receive("orders") as batch:
            assert batch.messages[0].body == b"\x00" * 100_000
            assert batch.messages[0].headers["long"] == "x\n" * 50_000
        assert transport.resolve("orders").canonical == f'"{postgresql.schema}"."orders"'


# --- SQL Server's way to insert, on a server that is there --------------------------------------------------


def test_declared_types_carry_every_length(postgres, postgresql):
    """Types and lengths are declared to pyodbc as for SQL Server; values of all lengths arrive whole."""
    rows = [
        Row(f"00000000-0000-0000-0000-{number:012}", NEVER_EXPIRES, "ü" * size, b"\x00\xff" * size)
        for number, size in enumerate((0, 1, 10, 2_000, 2_001, 4_000, 8_001, 100_000, 1, 0))
    ]
    with QueueTransport(postgres.url(driver=PYODBC), schema=postgresql.schema) as transport:
        transport.install("orders")
        queue = transport.resolve("orders")
        send = transport.database.dialect.statement("nservicebus/queue.send", queue=queue)
        with transport.database.transaction() as transaction:
            SqlServerDriver().insert(transaction, send, rows, {})
            found = transaction.rows(Command(f"SELECT headers, body FROM {queue.qualified} ORDER BY seq"))
    assert [tuple(row) for row in found] == [(row.headers, row.body) for row in rows]


# --- drivers that are missing -------------------------------------------------------------------------------


def test_an_odbc_driver_that_is_not_installed_is_named(postgres):
    with (
        QueueTransport("postgresql+pyodbc://u:p@127.0.0.1/db?driver=No+Such+Driver") as transport,
        pytest.raises(DriverMissingError, match="No Such Driver"),
    ):
        transport.peek("orders")
    with (
        QueueTransport(odbc_setting(postgres, "s3cret", "no such driver")) as transport,
        pytest.raises(DriverMissingError, match=r"no such driver.*install the ODBC driver") as raised,
    ):
        transport.peek("orders")
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("module", "setting", "words"),
    [
        ("psycopg", "postgresql://user:s3cret@127.0.0.1:9/db", r"pip install 'queue_pipeline\[postgresql\]'"),
        ("pyodbc", "postgresql+pyodbc://user:s3cret@127.0.0.1:9/db", "unixodbc"),
        ("pyodbc", "mssql://user:s3cret@127.0.0.1:9/db", "unixodbc"),
    ],
)
def test_a_python_driver_that_is_not_installed_is_named_with_the_next_step(monkeypatch, module, setting, words):
    monkeypatch.setitem(sys.modules, module, None)
    with QueueTransport(setting) as transport, pytest.raises(DriverMissingError, match=words) as raised:
        transport.peek("orders")
    assert "s3cret" not in str(raised.value)


def test_a_driver_is_loaded_with_the_first_connection():
    program = (
        "import sys, queue_pipeline.transport as t\n"
        "t.QueueTransport('postgresql://h/d'), t.QueueTransport('mssql://h/d')\n"
        "assert not {'psycopg', 'pyodbc'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[4])
