"""Errors of drivers: what kind of fault they are, and what we make of them."""

import shlex
import sqlite3
from pathlib import Path

import pyodbc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.transport.database.dialects.postgresql import PostgreSql
from queue_pipeline.transport.database.dialects.sqlite import Sqlite
from queue_pipeline.transport.database.dialects.sqlserver import SqlServer
from queue_pipeline.transport.database.faults import Fault, driver_message, native_number, translate
from queue_pipeline.transport.errors import (
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

MICROSOFT = "[Microsoft][ODBC Driver 18 for SQL Server]"


def microsoft(state: str, text: str, number: int = 0, call: str = "SQLExecDirectW") -> pyodbc.Error:
    return pyodbc.Error(state, f"[{state}] {MICROSOFT}[SQL Server]{text} ({number}) ({call})")


def freetds(state: str, text: str, number: int) -> pyodbc.Error:
    return pyodbc.Error(state, f"[{state}] [FreeTDS][SQL Server]{text} ({number}) (SQLExecDirectW)")


def psqlodbc(state: str, text: str, number: int = 1, call: str = "SQLExecDirectW") -> pyodbc.Error:
    return pyodbc.Error(state, f"[{state}] {text};\nError while executing the query ({number}) ({call})")


# --- SQL Server --------------------------------------------------------------------------------------------

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
def test_errors_of_sqlserver_are_told_apart(error, fault):
    assert SqlServer().fault(error) is fault


@pytest.mark.parametrize(
    ("fault", "numbers"),
    [
        # Locks, memory and workers that a busy server lacks for a moment; a snapshot that somebody changed.
        (Fault.VICTIM, (1204, 701, 8645, 8651, 3960)),
        # Azure's throttling and failover; a replica that is no longer primary; a session that was ended.
        (Fault.CONNECTION, (40501, 40540, 40143, 10928, 10929, 49918, 49919, 49920, 4221, 976, 983, 596, 6005)),
        # A log or a file group that is full; a database that is read-only for now.
        (Fault.RESOURCES, (9002, 1101, 1105, 3906)),
    ],
)
def test_a_sick_sqlserver_is_not_the_fault_of_a_message(fault, numbers):
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
def test_babelfish_says_what_is_missing_in_the_words_of_postgresql(words, fault):
    for error in (freetds("42000", words, 33557097), microsoft("42000", words, 33557097)):
        assert SqlServer().fault(error) is fault


# --- PostgreSQL --------------------------------------------------------------------------------------------


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
def test_words_that_only_look_like_a_lost_connection_are_none(error):
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


# --- SQLite: its own errors, for they carry codes that cannot be made up ------------------------------------


def sqlite_error(work) -> sqlite3.Error:
    with pytest.raises(sqlite3.Error) as caught:
        work()
    return caught.value


def test_a_missing_table_of_sqlite_is_told_apart():
    connection = sqlite3.connect(":memory:")
    assert Sqlite().fault(sqlite_error(lambda: connection.execute("DELETE FROM orders"))) is Fault.MISSING_TABLE
    connection.close()


@pytest.mark.parametrize(
    "statement", ["SELECT colour FROM orders", "INSERT INTO orders (colour) VALUES (1)", "UPDATE orders SET colour = 1"]
)
def test_a_missing_column_of_sqlite_is_distinguished(statement):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE orders (Id TEXT)")
    assert Sqlite().fault(sqlite_error(lambda: connection.execute(statement))) is Fault.MISSING_COLUMN
    connection.close()


def test_a_merge_without_a_unique_index_is_distinguished():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a)")
    merge = "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING"
    assert Sqlite().fault(sqlite_error(lambda: connection.execute(merge))) is Fault.NO_UNIQUE_INDEX
    connection.close()


def test_a_full_disk_under_sqlite_is_not_the_fault_of_a_message(tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "queues.db", isolation_level=None)
    connection.execute("CREATE TABLE t (a)")
    connection.execute("PRAGMA max_page_count = 4")
    error = sqlite_error(lambda: connection.execute("INSERT INTO t VALUES (zeroblob(1000000))"))
    assert error.sqlite_errorcode == sqlite3.SQLITE_FULL
    assert Sqlite().fault(error) is Fault.RESOURCES
    connection.close()


def test_a_damaged_sqlite_file_is_not_the_fault_of_a_message(tmp_path: Path):
    path = tmp_path / "queues.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 100)
    connection.commit()
    connection.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * 8192 + whole[12288:])
    connection = sqlite3.connect(path)
    error = sqlite_error(lambda: connection.execute("SELECT sum(length(a)) FROM t").fetchall())
    assert error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT
    assert Sqlite().fault(error) is Fault.RESOURCES
    connection.close()


def test_what_already_exists_in_sqlite_is_told_apart():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE orders (Id TEXT)")
    for statement in ("CREATE TABLE orders (Id TEXT)", "ALTER TABLE orders ADD COLUMN Id TEXT"):
        assert Sqlite().fault(sqlite_error(lambda s=statement: connection.execute(s))) is Fault.EXISTS
    connection.close()


def test_a_busy_sqlite_database_asks_for_another_try(tmp_path: Path):
    path = tmp_path / "queues.db"
    holder, other = (sqlite3.connect(path, timeout=0, isolation_level=None) for _ in range(2))
    holder.execute("BEGIN IMMEDIATE")
    assert Sqlite().fault(sqlite_error(lambda: other.execute("BEGIN IMMEDIATE"))) is Fault.VICTIM
    holder.close()
    other.close()


def test_a_sqlite_file_that_may_not_be_written_is_a_matter_of_rights(tmp_path: Path):
    path = tmp_path / "queues.db"
    sqlite3.connect(path).close()
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert Sqlite().fault(sqlite_error(lambda: connection.execute("CREATE TABLE t (a)"))) is Fault.PERMISSION
    connection.close()


def test_a_file_that_is_no_database_or_is_not_there_cannot_be_reached(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("no database at all, but long enough to be read as a header" * 20)
    connection = sqlite3.connect(path)
    assert Sqlite().fault(sqlite_error(lambda: connection.execute("SELECT * FROM t"))) is Fault.CONNECTION
    connection.close()
    missing = tmp_path / "missing" / "queues.db"
    assert Sqlite().fault(sqlite_error(lambda: sqlite3.connect(missing))) is Fault.CONNECTION


def test_a_closed_sqlite_connection_is_gone():
    connection = sqlite3.connect(":memory:")
    connection.close()
    assert Sqlite().fault(sqlite_error(lambda: connection.execute("SELECT 1"))) is Fault.CONNECTION


def test_other_errors_of_sqlite_are_other_errors():
    connection = sqlite3.connect(":memory:")
    assert Sqlite().fault(sqlite_error(lambda: connection.execute("SELEKT"))) is Fault.OTHER
    connection.close()


# --- words -------------------------------------------------------------------------------------------------


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
def test_the_drivers_words_come_in_one_line_without_its_bookkeeping(error, words):
    assert driver_message(error) == words


def test_brackets_inside_the_words_are_kept():
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
def test_the_servers_number_is_found_at_the_end(error, number):
    assert native_number(error) == number


@pytest.mark.parametrize(
    "secret", ["hunter2", "two  spaces", "tab\there", "ends with a dot.", "ends;", "[brackets] first"]
)
@pytest.mark.parametrize("text", ["login with {} failed", "login failed: {}", "{} was refused"])
def test_a_secret_in_the_drivers_words_is_left_out(secret, text):
    words = driver_message(microsoft("28000", text.format(secret), 18456), [secret])
    assert "***" in words
    assert secret.strip(" .;") not in words
    assert " ".join(secret.split()).strip(" .;") not in words


def test_the_longer_of_two_secrets_is_left_out_whole():
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


# --- our errors --------------------------------------------------------------------------------------------

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
def test_an_error_names_its_queue_the_drivers_words_and_the_next_step(fault, queue, kind, next_step):
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
    # Trying again is right for these alone; whoever retries looks for the type.
    assert {fault for fault, kind in kinds.items() if kind in (TransientDatabaseError, LayoutChangedError)} == {
        Fault.VICTIM,
        Fault.LAYOUT,
    }


def test_a_queue_that_is_missing_is_told_by_name():
    ours = translate(Fault.MISSING_TABLE, Exception("x"), queue="or'ders@[dbo]", where="w")
    assert isinstance(ours, QueueNotFoundError)
    assert ours.queue == "or'ders@[dbo]"
    command = str(ours).partition("create it with: ")[2].removesuffix(" (x)")
    assert shlex.split(command) == ["queue-pipeline", "install", "or'ders@[dbo]"]


def test_a_missing_right_is_told_with_the_queue_that_it_is_about():
    denied = translate(Fault.PERMISSION, psqlodbc("42501", "ERROR: permission denied"), queue="secrets", where=WHERE)
    assert isinstance(denied, AccessDeniedError)
    assert denied.queue == "secrets"
