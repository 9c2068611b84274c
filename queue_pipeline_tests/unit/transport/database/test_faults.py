"""Errors of SQL Server and of PostgreSQL: what kind of fault they are."""

import pyodbc
import pytest

from queue_pipeline.errors import (
    DatabaseUnavailableError,
    TransientDatabaseError,
)
from queue_pipeline.transport.database.dialects.postgresql import PostgreSql
from queue_pipeline.transport.database.dialects.sqlserver import SqlServer
from queue_pipeline.transport.database.faults import Fault, driver_message, translate
from queue_pipeline_tests.support.databases.odbc_errors import MICROSOFT, freetds, microsoft, psqlodbc

VICTIM_TEXT = (
    "Transaction (Process ID 55) was deadlocked on lock resources with another process and has been chosen as "
    "the deadlock victim. Rerun the transaction."
)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (microsoft("40001", VICTIM_TEXT, 1205), Fault.VICTIM),
        (freetds("40001", VICTIM_TEXT, 1205), Fault.VICTIM),
        (microsoft("40001", "Snapshot isolation transaction aborted", 3960), Fault.VICTIM),
        (microsoft("HYT00", "Lock request time out period exceeded.", 1222), Fault.LOCKED),
        (microsoft("42S02", "Invalid object name 'db.dbo.orders'.", 208), Fault.MISSING_TABLE),
        (freetds("42S02", "Invalid object name 'db.dbo.orders'.", 208), Fault.MISSING_TABLE),
        (freetds("42000", 'relation "dbo.orders" does not exist', 33557097), Fault.MISSING_TABLE),
        (microsoft("42S22", "Invalid column name 'Recoverable'.", 207), Fault.LAYOUT),
        (
            microsoft("23000", "Cannot insert the value NULL into column 'Recoverable', table 'db.dbo.orders'", 515),
            Fault.LAYOUT,
        ),
        (microsoft("42S22", "Invalid column name 'Colour'.", 207), Fault.MISSING_COLUMN),
        (freetds("42S22", "Invalid column name 'Colour'.", 207), Fault.MISSING_COLUMN),
        (microsoft("23000", "Cannot insert the value NULL into column 'Headers'", 515), Fault.OTHER),
        (microsoft("23000", "Cannot insert duplicate key row in object 'dbo.totals'", 2601), Fault.DUPLICATE),
        (microsoft("23000", "Violation of PRIMARY KEY constraint 'PK_totals'.", 2627), Fault.DUPLICATE),
        (microsoft("42S01", "There is already an object named 'orders' in the database.", 2714), Fault.EXISTS),
        (microsoft("42S11", "The index 'Index_RowVersion' already exists on table 'orders'.", 1913), Fault.EXISTS),
        (microsoft("42000", "The SELECT permission was denied on the object 'orders'", 229), Fault.PERMISSION),
        (microsoft("42000", "The UPDATE permission was denied on the column 'Body'", 230), Fault.PERMISSION),
        (microsoft("42000", "CREATE TABLE permission denied in database 'db'.", 262), Fault.PERMISSION),
        (microsoft("42000", "The server principal is not able to access the database 'db'", 916), Fault.PERMISSION),
        (microsoft("28000", "Login failed for user 'sa'.", 18456, "SQLDriverConnect"), Fault.LOGIN),
        (freetds("42000", "Login failed for user 'sa'.", 18456), Fault.LOGIN),
        (microsoft("28000", "Cannot authenticate."), Fault.LOGIN),
        (microsoft("42000", 'Cannot open database "db" requested by the login.', 4060), Fault.MISSING_DATABASE),
        (
            microsoft("08004", "Database 'db' does not exist. Make sure that the name is right.", 911),
            Fault.MISSING_DATABASE,
        ),
        (microsoft("42000", 'The specified schema name "sales" either does not exist', 2760), Fault.MISSING_SCHEMA),
        (microsoft("08S01", "Communication link failure", 0), Fault.CONNECTION),
        (
            pyodbc.OperationalError("08001", f"[08001] {MICROSOFT}TCP Provider: Error code 0x2749 (10057)"),
            Fault.CONNECTION,
        ),
        (pyodbc.OperationalError("HYT00", f"[HYT00] {MICROSOFT}Login timeout expired (0)"), Fault.CONNECTION),
        (microsoft("42000", "Database 'db' on server 's' is not currently available.", 40613), Fault.CONNECTION),
        (microsoft("42000", "Incorrect syntax near 'FORM'.", 102), Fault.OTHER),
        (microsoft("22012", "Divide by zero error encountered.", 8134), Fault.OTHER),
        (pyodbc.Error(), Fault.OTHER),
    ],
)
def test_errors_of_sqlserver_are_distinguished(error, fault):
    assert SqlServer().fault(error) is fault


@pytest.mark.parametrize(
    ("fault", "numbers"),
    [
        # Locks, memory and workers that a busy server lacks for a moment; a snapshot that another transaction changed.
        (Fault.VICTIM, (1204, 701, 8645, 8651, 3960)),
        # Azure's throttling and failover; a replica that is no longer primary; a session that was ended.
        (Fault.CONNECTION, (40501, 40540, 40143, 10928, 10929, 49918, 49919, 49920, 4221, 976, 983, 596, 6005)),
        # A log or a file group that is full; a database that is read-only for now.
        (Fault.RESOURCES, (9002, 1101, 1105, 3906)),
    ],
)
def test_a_failing_sqlserver_is_not_the_fault_of_a_message(fault, numbers):
    """Whatever the state says: the batch is tried again as it is, and no message goes to the error queue."""
    for number in numbers:
        for error in (microsoft("42000", "words", number), freetds("HY000", "words", number)):
            assert SqlServer().fault(error) is fault
            ours = translate(fault, error, queue="orders", where="w")
            assert isinstance(ours, TransientDatabaseError | DatabaseUnavailableError)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ('relation "dbo.orders" does not exist', Fault.MISSING_TABLE),
        ('schema "sales" does not exist', Fault.MISSING_SCHEMA),
        ('column "colour" does not exist', Fault.MISSING_COLUMN),
        ('column "colour" of relation "orders" does not exist', Fault.MISSING_COLUMN),
        ('column "recoverable" of relation "orders" does not exist', Fault.LAYOUT),
        ('function "dbo.f" does not exist', Fault.OTHER),
    ],
)
def test_babelfish_reports_what_is_missing_in_postgresqls_wording(words, fault):
    for error in (freetds("42000", words, 33557097), microsoft("42000", words, 33557097)):
        assert SqlServer().fault(error) is fault


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (psqlodbc("40P01", "ERROR: deadlock detected"), Fault.VICTIM),
        (psqlodbc("40001", "ERROR: could not serialize access due to concurrent update"), Fault.VICTIM),
        (psqlodbc("55P03", "ERROR: canceling statement due to lock timeout"), Fault.LOCKED),
        (psqlodbc("57014", "ERROR: canceling statement due to statement timeout"), Fault.VICTIM),
        (psqlodbc("42P01", 'ERROR: relation "public.orders" does not exist'), Fault.MISSING_TABLE),
        (psqlodbc("42S02", 'ERROR: relation "public.orders" does not exist'), Fault.MISSING_TABLE),
        (psqlodbc("3F000", 'ERROR: schema "sales" does not exist'), Fault.MISSING_SCHEMA),
        (psqlodbc("3D000", 'FATAL: database "shop" does not exist'), Fault.MISSING_DATABASE),
        (
            pyodbc.OperationalError("08001", '[08001] FATAL:  database "shop" does not exist\n (101)'),
            Fault.MISSING_DATABASE,
        ),
        (psqlodbc("42P07", 'ERROR: relation "orders" already exists'), Fault.EXISTS),
        (psqlodbc("42710", 'ERROR: constraint "orders_seq_key" already exists'), Fault.EXISTS),
        (
            psqlodbc("23505", 'ERROR: duplicate key value violates unique constraint "pg_class_relname_nsp_index"'),
            Fault.EXISTS,
        ),
        (
            psqlodbc("23505", 'ERROR: duplicate key value violates unique constraint "pg_type_typname_nsp_index"'),
            Fault.EXISTS,
        ),
        (psqlodbc("23505", 'ERROR: duplicate key value violates unique constraint "orders_pkey"'), Fault.OTHER),
        (psqlodbc("42501", "ERROR: permission denied for table orders"), Fault.PERMISSION),
        (psqlodbc("28P01", 'FATAL: password authentication failed for user "u"'), Fault.LOGIN),
        (psqlodbc("28000", 'FATAL: role "u" does not exist'), Fault.LOGIN),
        (
            pyodbc.OperationalError(
                "08001", '[08001] FATAL:  password authentication failed for user "u"\n (101) (SQLDriverConnect)'
            ),
            Fault.LOGIN,
        ),
        (
            pyodbc.OperationalError(
                "08001", '[08001] connection to server at "localhost", port 1 failed: Connection refused (101)'
            ),
            Fault.CONNECTION,
        ),
        (psqlodbc("57P01", "FATAL: terminating connection due to administrator command"), Fault.CONNECTION),
        (psqlodbc("57P03", "FATAL: the database system is starting up"), Fault.CONNECTION),
        (psqlodbc("08S01", "server closed the connection unexpectedly", 35), Fault.CONNECTION),
        (psqlodbc("HY000", "server closed the connection unexpectedly", 35), Fault.CONNECTION),
        (psqlodbc("HY000", "Could not send Query(connection dead): connection lost", 26), Fault.CONNECTION),
        (psqlodbc("HY000", "The connection has been lost"), Fault.CONNECTION),
        (psqlodbc("42703", 'ERROR: column "colour" does not exist'), Fault.MISSING_COLUMN),
        (psqlodbc("42P10", "ERROR: there is no unique or exclusion constraint matching"), Fault.NO_UNIQUE_INDEX),
        (psqlodbc("53100", "ERROR: could not extend file: No space left on device"), Fault.RESOURCES),
        (psqlodbc("53300", "FATAL: sorry, too many clients already"), Fault.RESOURCES),
        (psqlodbc("58030", "ERROR: could not read block 0: Input/output error"), Fault.RESOURCES),
        (psqlodbc("25006", "ERROR: cannot execute DELETE in a read-only transaction"), Fault.RESOURCES),
        (psqlodbc("P0001", "ERROR: too long for us"), Fault.RAISED),
        (psqlodbc("42601", 'ERROR: syntax error at or near "FORM"'), Fault.OTHER),
        (psqlodbc("25P02", "ERROR: current transaction is aborted"), Fault.OTHER),
        (pyodbc.Error(), Fault.OTHER),
    ],
)
def test_errors_of_postgresql_over_odbc_are_distinguished(error, fault):
    assert PostgreSql().fault(error) is fault


@pytest.mark.parametrize(
    "error",
    [
        psqlodbc("22023", "ERROR: the connection string option closed is unknown"),
        psqlodbc("23514", 'ERROR: new row for relation "connections" violates check constraint "closed"'),
    ],
)
def test_an_error_text_that_only_resembles_a_lost_connection_is_another_error(error):
    """A queue or a column may well be called by such words, and a lost connection is an alarm."""
    assert PostgreSql().fault(error) is Fault.OTHER


def server_error(state: str):
    errors = pytest.importorskip("psycopg").errors
    return errors.lookup(state)("the server's words")


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ("40001", Fault.VICTIM),
        ("40P01", Fault.VICTIM),
        ("55P03", Fault.LOCKED),
        ("57014", Fault.VICTIM),
        ("25P04", Fault.CONNECTION),
        ("42P01", Fault.MISSING_TABLE),
        ("42703", Fault.MISSING_COLUMN),
        ("3F000", Fault.MISSING_SCHEMA),
        ("3D000", Fault.MISSING_DATABASE),
        ("42P10", Fault.NO_UNIQUE_INDEX),
        ("42P07", Fault.EXISTS),
        ("42501", Fault.PERMISSION),
        ("28P01", Fault.LOGIN),
        ("28000", Fault.LOGIN),
        ("08006", Fault.CONNECTION),
        ("57P01", Fault.CONNECTION),
        ("57P03", Fault.CONNECTION),
        ("57P05", Fault.CONNECTION),
        ("25P03", Fault.CONNECTION),
        ("53100", Fault.RESOURCES),
        ("53200", Fault.RESOURCES),
        ("53300", Fault.RESOURCES),
        ("58030", Fault.RESOURCES),
        ("25006", Fault.RESOURCES),
        ("23505", Fault.OTHER),
        ("42601", Fault.OTHER),
    ],
)
def test_errors_of_postgresql_are_distinguished_by_their_state(state, fault):
    assert PostgreSql().fault(server_error(state)) is fault


@pytest.mark.parametrize(
    ("kind", "words", "fault"),
    [
        ("OperationalError", 'connection failed: FATAL:  password authentication failed for user "u"', Fault.LOGIN),
        ("OperationalError", 'connection failed: FATAL:  role "u" is not permitted to log in', Fault.LOGIN),
        ("OperationalError", "connection failed: fe_sendauth: no password supplied", Fault.LOGIN),
        ("OperationalError", 'connection failed: FATAL:  no pg_hba.conf entry for host "::1"', Fault.LOGIN),
        ("OperationalError", 'connection failed: FATAL:  database "shop" does not exist', Fault.MISSING_DATABASE),
        ("OperationalError", "connection failed: Connection refused", Fault.CONNECTION),
        ("OperationalError", "consuming input failed: server closed the connection unexpectedly", Fault.CONNECTION),
        ("OperationalError", "the connection is closed", Fault.CONNECTION),
        ("InterfaceError", "the connection is lost", Fault.CONNECTION),
        ("ProgrammingError", "cannot adapt type 'dict'", Fault.OTHER),
        ("DataError", "PostgreSQL text fields cannot contain NUL (0x00) bytes", Fault.OTHER),
    ],
)
def test_errors_of_psycopg_without_a_state_are_the_drivers_own(kind, words, fault):
    error = getattr(pytest.importorskip("psycopg"), kind)(words)
    assert PostgreSql().fault(error) is fault
    assert driver_message(error) == " ".join(words.split())
