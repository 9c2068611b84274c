import subprocess
import sys

import pytest

from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.database import Database
from queue_pipeline.transport.database_url import parse_database_url
from queue_pipeline.transport.dialects import OdbcPostgreSql, PostgreSql
from queue_pipeline.transport.errors import ConfigurationError, DriverMissingError
from queue_pipeline.transport.faults import Fault, driver_message

NOWHERE = "postgresql://user:s3cret@127.0.0.1:9/db"


# --- choosing it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["", "?sslmode=disable"])
def test_psycopg_is_the_driver_of_postgresql(option):
    assert type(Database(parse_database_url(f"{NOWHERE}{option}")).dialect) is PostgreSql


@pytest.mark.parametrize("option", ["", "?driver=PostgreSQL+Unicode"])
def test_odbc_is_used_where_the_setting_names_pyodbc(option):
    setting = NOWHERE.replace("postgresql:", "postgresql+pyodbc:")
    assert type(Database(parse_database_url(f"{setting}{option}")).dialect) is OdbcPostgreSql


def test_an_odbc_string_stays_odbc():
    url = parse_database_url("odbc:DRIVER={psycopg};SERVER=127.0.0.1")
    with QueueTransport(url) as transport, pytest.raises(Exception, match="Can't open lib 'psycopg'"):
        transport.peek("orders")


def test_it_is_loaded_with_the_first_connection():
    program = (
        "import sys, queue_pipeline.transport as t\n"
        "t.QueueTransport('postgresql://h/d')\n"
        "assert 'psycopg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_where_it_is_not_installed_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "queue_pipeline.transport.dialects.psycopg_connection", raising=False)
    with (
        QueueTransport(NOWHERE) as transport,
        pytest.raises(DriverMissingError, match=r"pip install 'queue_pipeline\[postgresql\]'") as raised,
    ):
        transport.peek("orders")
    assert "s3cret" not in str(raised.value)


# --- options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("colour=blue", r"no option 'colour'"),
        ("driver=psycopg", r"no option 'driver'.*postgresql\+pyodbc://"),
        ("ReadOnly=1", r"no option 'ReadOnly'.*ODBC"),
        ("UseServerSidePrepare=0", r"no option 'UseServerSidePrepare'"),
        ("autocommit=1", r"no option 'autocommit'"),
        ("client_encoding=latin1", r"'client_encoding' cannot be 'latin1'"),
        ("sslmode=sometimes", r"sslmode"),
        ("connect_timeout=soon", r"connect_timeout"),
        ("port=first", r"port"),
    ],
)
def test_an_option_that_it_cannot_use_is_named_without_the_password(option, words):
    pytest.importorskip("psycopg")
    with (
        QueueTransport(f"{NOWHERE}?{option}") as transport,
        pytest.raises(ConfigurationError, match=words) as raised,
    ):
        transport.peek("orders")
    assert "s3cret" not in str(raised.value)


def test_options_go_by_libpqs_names_in_any_letter_case():
    connection = pytest.importorskip("queue_pipeline.transport.dialects.psycopg_connection")
    given = {"SSLMode": "disable", "application_name": "shop", "client_encoding": "utf-8"}
    assert connection.connection_options(given) == {
        "sslmode": "disable",
        "application_name": "shop",
        "client_encoding": "utf-8",
    }


def test_the_password_of_a_key_is_a_secret_too():
    url = parse_database_url("postgresql://u:one@h/d?sslkey=k&sslpassword=two")
    assert set(url.secrets()) == {"one", "two"}
    assert "two" not in repr(url) + str(url)


# --- faults ------------------------------------------------------------------------------------------------


def server_error(state: str):
    errors = pytest.importorskip("psycopg").errors
    return errors.lookup(state)("the server's words")


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ("40001", Fault.VICTIM),
        ("40P01", Fault.VICTIM),
        ("55P03", Fault.VICTIM),
        ("42P01", Fault.MISSING_TABLE),
        ("3F000", Fault.MISSING_SCHEMA),
        ("3D000", Fault.MISSING_DATABASE),
        ("42P10", Fault.NO_UNIQUE_INDEX),
        ("42P07", Fault.EXISTS),
        ("42501", Fault.PERMISSION),
        ("28P01", Fault.LOGIN),
        ("08006", Fault.CONNECTION),
        ("57P01", Fault.CONNECTION),
        ("57P05", Fault.CONNECTION),
        ("25P03", Fault.CONNECTION),
        # An operational error to psycopg, and none to the connection.
        ("57014", Fault.OTHER),
        ("53100", Fault.OTHER),
        ("23505", Fault.OTHER),
        ("42601", Fault.OTHER),
    ],
)
def test_errors_of_the_server_are_told_apart_by_their_state(state, fault):
    assert PostgreSql().fault(server_error(state)) is fault


@pytest.mark.parametrize(
    ("kind", "words", "fault"),
    [
        ("OperationalError", 'connection failed: FATAL:  password authentication failed for user "u"', Fault.LOGIN),
        ("OperationalError", 'connection failed: FATAL:  role "u" is not permitted to log in', Fault.LOGIN),
        ("OperationalError", "connection failed: fe_sendauth: no password supplied", Fault.LOGIN),
        ("OperationalError", 'connection failed: FATAL:  database "shop" does not exist', Fault.MISSING_DATABASE),
        ("OperationalError", "connection failed: Connection refused", Fault.CONNECTION),
        ("OperationalError", "consuming input failed: server closed the connection unexpectedly", Fault.CONNECTION),
        ("OperationalError", "the connection is closed", Fault.CONNECTION),
        ("InterfaceError", "the connection is lost", Fault.CONNECTION),
        ("ProgrammingError", "cannot adapt type 'dict'", Fault.OTHER),
        ("DataError", "PostgreSQL text fields cannot contain NUL (0x00) bytes", Fault.OTHER),
    ],
)
def test_errors_without_a_state_are_the_drivers_own(kind, words, fault):
    error = getattr(pytest.importorskip("psycopg"), kind)(words)
    assert PostgreSql().fault(error) is fault
    assert driver_message(error) == " ".join(words.split())
