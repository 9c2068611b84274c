"""What the transport's errors say: the words of the driver without secrets, and the next step."""

import shlex
import sqlite3

import pyodbc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    DatabaseError,
    DatabaseUnavailableError,
    DuplicateKeyError,
    LayoutChangedError,
    LockTimeoutError,
    QueueNotFoundError,
    SchemaNotFoundError,
    TableNotFoundError,
    TransientDatabaseError,
    UniqueIndexMissingError,
)
from queue_pipeline.transport.database.faults import Fault, driver_message, native_number, translate
from queue_pipeline_tests.support.databases.odbc_errors import freetds, microsoft, psqlodbc


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (microsoft("42S02", "Invalid object name 'orders'.", 208), "Invalid object name 'orders'"),
        (freetds("42000", "Incorrect syntax near 'x'.", 102), "Incorrect syntax near 'x'"),
        (psqlodbc("42P01", 'ERROR: relation "orders" does not exist'), 'relation "orders" does not exist'),
        (
            pyodbc.OperationalError(
                "08001", "[08001] connection refused\n\tIs the server running? (101) (SQLDriverConnect)"
            ),
            "connection refused Is the server running?",
        ),
        (sqlite3.OperationalError("no such table: orders"), "no such table: orders"),
        # pyodbc's own errors come the other way round.
        (
            pyodbc.ProgrammingError("The SQL contains 4 parameter markers, but 12 parameters were supplied", "HY000"),
            "The SQL contains 4 parameter markers, but 12 parameters were supplied",
        ),
        (Exception(), ""),
    ],
)
def test_the_drivers_message_is_one_line_without_its_prefixes(error, words):
    assert driver_message(error) == words


def test_brackets_inside_the_message_are_kept():
    error = microsoft("42S02", "Invalid object name '[dbo].[orders]'.", 208)
    assert driver_message(error) == "Invalid object name '[dbo].[orders]'"


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (microsoft("42S02", "Invalid object name 'orders (7)'.", 208), 208),
        (microsoft("42000", "x", -2147467259), -2147467259),
        (sqlite3.OperationalError("no such table: orders (7)"), None),
        (Exception(), None),
    ],
)
def test_the_error_number_of_the_server_is_found_at_the_end(error, number):
    assert native_number(error) == number


@pytest.mark.parametrize(
    "secret", ["hunter2", "two  spaces", "tab\there", "ends with a dot.", "ends;", "[brackets] first"]
)
@pytest.mark.parametrize("text", ["login with {} failed", "login failed: {}", "{} was refused"])
def test_a_secret_in_the_drivers_message_is_left_out(secret, text):
    words = driver_message(microsoft("28000", text.format(secret), 18456), [secret])
    assert "***" in words
    assert secret.strip(" .;") not in words
    assert " ".join(secret.split()).strip(" .;") not in words


def test_the_longer_of_two_secrets_is_left_out_completely():
    words = driver_message(microsoft("28000", "PWD=swordfish", 18456), ["sword", "swordfish"])
    assert words == "PWD=***"


@given(
    st.text(
        st.characters(categories=["L", "N", "P", "Zs"], exclude_characters="<>*") | st.sampled_from("\t.;[]"),
        min_size=1,
    )
)
def test_any_secret_is_left_out_wherever_it_stands(secret):
    assert driver_message(pyodbc.Error("28000", f"<<<{secret}>>>"), [secret]) == "<<<***>>>"


WHERE = "postgresql://u:***@host/db"


@pytest.mark.parametrize(
    ("fault", "queue", "kind", "next_step"),
    [
        (Fault.MISSING_TABLE, "orders", QueueNotFoundError, "queue-pipeline install orders"),
        (Fault.MISSING_TABLE, None, TableNotFoundError, "queue-pipeline install"),
        (Fault.MISSING_SCHEMA, "orders", SchemaNotFoundError, "create the schema"),
        (Fault.MISSING_DATABASE, None, DatabaseUnavailableError, "check the name of the database"),
        (Fault.VICTIM, "orders", TransientDatabaseError, "another try"),
        (Fault.LOCKED, "orders", LockTimeoutError, "find that session and end it"),
        (Fault.CONNECTION, None, DatabaseUnavailableError, f"{WHERE} cannot be reached"),
        (Fault.RESOURCES, "orders", DatabaseUnavailableError, f"{WHERE} cannot go on"),
        (Fault.MISSING_COLUMN, "orders", DatabaseError, "no queue table, or not of this layout"),
        (Fault.LOGIN, None, AccessDeniedError, "check user and password"),
        (Fault.PERMISSION, "orders", AccessDeniedError, "queue-pipeline script orders --grant-to"),
        (Fault.LAYOUT, "orders", LayoutChangedError, "try again"),
        (Fault.EXISTS, "orders", AlreadyExistsError, "orders"),
        (Fault.NO_UNIQUE_INDEX, "orders", UniqueIndexMissingError, "orders"),
        (Fault.DUPLICATE, "orders", DuplicateKeyError, "orders"),
        (Fault.OTHER, "orders", DatabaseError, "orders"),
    ],
)
def test_an_error_names_its_queue_the_drivers_message_and_the_next_step(fault, queue, kind, next_step):
    error = pyodbc.Error("HY000", "[HY000] the driver's words with hunter2 in them")
    ours = translate(fault, error, queue=queue, where=WHERE, secrets=["hunter2"])
    assert type(ours) is kind
    words = str(ours)
    assert next_step in words
    assert "the driver's words with *** in them" in words
    assert "\n" not in words
    if queue:
        assert queue in words


@pytest.mark.parametrize(
    ("fault", "kind", "next_step"),
    [
        (Fault.MISSING_TABLE, TableNotFoundError, "create it with your own migration"),
        (Fault.MISSING_SCHEMA, TableNotFoundError, "create it with your own migration"),
        (Fault.PERMISSION, AccessDeniedError, "insert and update"),
        (Fault.MISSING_COLUMN, DatabaseError, "name only columns that the table has"),
        (Fault.OTHER, DatabaseError, "table shop.totals: "),
    ],
)
def test_an_error_about_a_users_own_table_names_it_and_never_our_installer(fault, kind, next_step):
    ours = translate(fault, Exception("words"), queue=None, where=WHERE, table="shop.totals")
    assert type(ours) is kind
    assert next_step in str(ours) and "table shop.totals" in str(ours) and "words" in str(ours)
    assert "queue-pipeline" not in str(ours)


def test_every_kind_of_fault_has_an_error_of_ours():
    kinds = {fault: type(translate(fault, Exception("x"), queue="q", where="w")) for fault in Fault}
    assert len(kinds) == len(Fault)
    assert all(issubclass(kind, Exception) for kind in kinds.values())
    # Only these are worth another try; code that retries checks the type.
    assert {fault for fault, kind in kinds.items() if kind in (TransientDatabaseError, LayoutChangedError)} == {
        Fault.VICTIM,
        Fault.LAYOUT,
    }


def test_a_missing_queue_is_reported_by_name():
    ours = translate(Fault.MISSING_TABLE, Exception("x"), queue="or'ders@[dbo]", where="w")
    assert isinstance(ours, QueueNotFoundError)
    assert ours.queue == "or'ders@[dbo]"
    command = str(ours).partition("create it with: ")[2].removesuffix(" (x)")
    assert shlex.split(command) == ["queue-pipeline", "install", "or'ders@[dbo]"]


def test_a_missing_right_is_reported_with_its_queue():
    denied = translate(Fault.PERMISSION, psqlodbc("42501", "ERROR: permission denied"), queue="secrets", where=WHERE)
    assert isinstance(denied, AccessDeniedError)
    assert denied.queue == "secrets"
