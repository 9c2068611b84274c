"""What drivers do in bulk: many messages a statement, within the limits of each database."""

from collections.abc import Sequence

import pyodbc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine

from queue_pipeline.errors import (
    ConfigurationError,
    DatabaseError,
    DatabaseUnavailableError,
    TransientDatabaseError,
)
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES, Row
from queue_pipeline.transport.database.drivers import DRIVERS, Driver, SqliteDriver, SqlServerDriver, chunks
from queue_pipeline.transport.database.setting import database_url

TABLE = "CREATE TABLE t (n INTEGER PRIMARY KEY, id TEXT, milliseconds INT, headers TEXT, body BLOB, batch TEXT)"
IN_ROW = Command(
    "INSERT INTO t (id, milliseconds, headers, body, batch)\nVALUES\n(:id, :milliseconds, :headers, :body, :batch)"
)
OUTSIDE = Command(
    "INSERT INTO t (id, milliseconds, headers, body, batch)\n"
    "SELECT column1, column2, column3, column4, :batch FROM (\nVALUES\n(:id, :milliseconds, :headers, :body)\n)"
)


def row(number: int, size: int = 1) -> Row:
    return Row(f"id{number}", NEVER_EXPIRES, f"h{number} ü", bytes([number % 256]) * size)


@pytest.fixture
def sqlite(tmp_path):
    database = Database(database_url(f"sqlite:///{tmp_path / 'queues.db'}"))
    with database.transaction() as transaction:
        transaction.execute(Command(TABLE))
    yield database
    database.close()


def stored(database: Database) -> list[tuple]:
    with database.transaction() as transaction:
        return transaction.rows(Command("SELECT id, milliseconds, headers, body, batch FROM t ORDER BY n"))


# --- parts -------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 50)), st.integers(1, 5), st.integers(1, 100))
def test_parts_hold_all_rows_in_their_order_and_are_no_larger_than_they_may_be(sizes, most_rows, most_bytes):
    rows = [Row(str(number), 0, "", b"x" * size) for number, size in enumerate(sizes)]
    parts = list(chunks(iter(rows), most_rows, most_bytes))
    assert [each for part in parts for each in part] == rows
    assert all(1 <= len(part) <= most_rows for part in parts)
    # A part is full with the row that reaches the bound, so that one large row goes alone or ends its part.
    assert all(sum(len(each.body) for each in part[:-1]) < most_bytes for part in parts)


def test_rows_are_made_as_they_are_needed():
    made = []

    def rows():
        for number in range(10):
            made.append(number)
            yield row(number)

    first = next(chunks(rows(), 3, 1_000))
    assert len(first) == 3 and made == [0, 1, 2]


# --- rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", [Driver(), SqliteDriver()], ids=lambda driver: type(driver).__name__)
@pytest.mark.parametrize("command", [IN_ROW, OUTSIDE], ids=["in the row", "outside of it"])
@pytest.mark.parametrize("count", [1, 2, 200, 201, 450])
def test_every_row_is_written_once_with_the_values_that_all_have_in_common(sqlite, driver, command, count):
    rows = [row(number) for number in range(count)]
    with sqlite.transaction() as transaction:
        driver.insert(transaction, command, iter(rows), {"batch": "b"})
    assert stored(sqlite) == [(*each, "b") for each in rows]


@pytest.mark.parametrize("driver", [Driver(), SqliteDriver()], ids=lambda driver: type(driver).__name__)
@pytest.mark.parametrize("common", [{}, {"batch": "b", "more": 1}], ids=["missing", "superfluous"])
@pytest.mark.parametrize("command", [IN_ROW, OUTSIDE], ids=["in the row", "outside of it"])
def test_a_missing_or_superfluous_value_is_an_error_and_nothing_is_written(sqlite, driver, common, command):
    with sqlite.transaction() as transaction, pytest.raises((TypeError, KeyError), match=r"batch|more"):
        driver.insert(transaction, command, [row(1)], common)
    assert stored(sqlite) == []


def test_no_rows_are_no_statement(sqlite):
    with sqlite.transaction() as transaction:
        for driver in (Driver(), SqliteDriver()):
            driver.insert(transaction, IN_ROW, iter(()), {"batch": "b"})
    assert stored(sqlite) == []


def test_an_error_in_the_middle_names_the_queue_and_undoes_all(sqlite):
    with sqlite.transaction() as transaction:
        transaction.execute(Command("CREATE UNIQUE INDEX i ON t (id)"))
    command = Command(IN_ROW.text, "orders")
    for driver in (Driver(), SqliteDriver()):
        with pytest.raises(DatabaseError, match="queue orders: UNIQUE"), sqlite.transaction() as transaction:
            driver.insert(transaction, command, [row(1), row(2), row(1)], {"batch": "b"})
        assert stored(sqlite) == []


def test_an_error_while_rows_are_made_undoes_those_that_were_written(sqlite):
    def rows():
        yield row(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), sqlite.transaction() as transaction:
        transaction.insert(IN_ROW, rows(), batch="b")
    assert stored(sqlite) == []


def test_only_psycopg_uses_copy(sqlite):
    assert [name for name, driver in DRIVERS.items() if driver.copies] == [("postgresql", "psycopg")]
    with sqlite.transaction() as transaction, pytest.raises(TypeError, match="no COPY"):
        transaction.copy(Command("COPY t FROM STDIN"), [], [])


def test_an_engine_of_an_unknown_driver_is_refused_with_those_that_are_known():
    engine = create_engine("mssql+pymssql://host/db", module=pyodbc)
    with pytest.raises(ConfigurationError, match=r"mssql\+pymssql is not known; .*mssql\+pyodbc"):
        Database(engine).engine  # noqa: B018


# --- SQL Server: what its driver gets, recorded by a connection that only listens ----------------------------

LONG_TEXT, LONG_BYTES = (pyodbc.SQL_WVARCHAR, 0, 0), (pyodbc.SQL_VARBINARY, 0, 0)
MESSAGE = [(pyodbc.SQL_WVARCHAR, 36, 0), (pyodbc.SQL_BIGINT, 0, 0), LONG_TEXT, LONG_BYTES]


class Cursor:
    """Notes the statements of a session, and answers none."""

    description = None
    rowcount = -1

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.heard = connection.heard
        self.sizes: list = []

    def setinputsizes(self, sizes: list) -> None:
        self.sizes = sizes

    def execute(self, text: str, parameters: Sequence = ()) -> None:
        self.heard.append((text, list(parameters), self.sizes))
        if "deadlock" in text:
            raise pyodbc.Error("40001", "[40001] [Microsoft][SQL Server]Deadlocked. (1205) (SQLExecDirectW)")

    def fetchone(self) -> tuple[str]:
        """Whatever SQLAlchemy asks about the isolation level."""
        return ("READ COMMITTED",)

    def nextset(self) -> bool:
        return False

    def close(self) -> None:
        pass


class Connection:
    autocommit = False
    driver = "libmsodbcsql-18.6.so.1.1"

    def __init__(self, heard: list) -> None:
        self.heard = heard

    def getinfo(self, number: int) -> str:
        assert number == pyodbc.SQL_DRIVER_NAME
        return self.driver

    def cursor(self) -> Cursor:
        return Cursor(self)

    def commit(self) -> None:
        self.heard.append(("COMMIT", [], []))

    def rollback(self) -> None:
        self.heard.append(("ROLLBACK", [], []))

    def close(self) -> None:
        pass


@pytest.fixture
def heard():
    return []


@pytest.fixture
def sqlserver(heard) -> Database:
    engine = create_engine("mssql+pyodbc://host/shop?driver=x", creator=lambda: Connection(heard), _initialize=False)
    database = Database(engine)
    with database.transaction():
        pass
    heard.clear()
    return database


def send(database: Database) -> Command:
    queue = AddressBook(database.dialect, catalog="shop").resolve("orders")
    return database.dialect.statement(
        "nservicebus/queue.send", queue=queue, **database.dialect.optional_columns(frozenset())
    )


def test_freetds_gets_no_types(sqlserver, heard, monkeypatch):
    """It takes a length of 0 at its word, and would store nothing."""
    monkeypatch.setattr(Connection, "driver", "libtdsodbc.so")
    with sqlserver.transaction() as transaction:
        transaction.insert(send(sqlserver), [row(1)])
    assert heard[0][2] == []


def test_types_of_sql_server_are_declared_so_that_lengths_change_no_plan(sqlserver, heard):
    """Undeclared, a long text would be `ntext`, which JSON functions refuse, and every length a plan of its own."""
    short, long = row(1), Row("id2", 5, "x" * 5_000, b"x" * 10_000)
    with sqlserver.transaction() as transaction:
        transaction.insert(send(sqlserver), [short, long])
        transaction.insert(send(sqlserver), [long, short])
    (first, values, sizes), (second, _, again), end = heard[:3]
    assert sizes == again == MESSAGE * 2
    assert first == second and first.count("?") == len(values) == 8
    assert values == [*short, *long]
    assert end[0] == "COMMIT"


def test_a_statement_for_sql_server_holds_no_more_values_than_it_takes(sqlserver, heard):
    outbox = AddressBook(sqlserver.dialect, catalog="shop").own("QueueOutbox")
    stage = sqlserver.dialect.statement("outbox.stage", outbox=outbox)
    with sqlserver.transaction() as transaction:
        transaction.insert(send(sqlserver), (row(number) for number in range(1_201)))
        transaction.insert(stage, (row(number) for number in range(1_201)), claim_id="c", task="t", group_number=1)
    inserts = [(values, sizes) for text, values, sizes in heard if text.startswith("INSERT")]
    counts = [len(values) for values, _ in inserts]
    assert max(counts) < 2_100
    assert sum(counts) == 2 * 4 * 1_201 + 3 * (len(counts) - 3)
    assert len(counts) == 3 + 3
    assert all(sizes[:4] == [None, None, None, MESSAGE[0]] for _, sizes in inserts[3:]), "others are left to the driver"


def test_large_messages_go_in_statements_of_a_few_megabytes(sqlserver, heard):
    with sqlserver.transaction() as transaction:
        transaction.insert(send(sqlserver), (row(number, 1_500_000) for number in range(7)))
    assert [len(values) // 4 for text, values, _ in heard if text.startswith("INSERT")] == [3, 3, 1]


def test_single_messages_headers_and_states_are_declared_too(sqlserver, heard):
    command = Command("UPDATE t SET Headers = :headers, Body = :body, State = :state WHERE Id = :id")
    with sqlserver.transaction() as transaction:
        transaction.execute(command, headers="ü", body=b"x", state="{}", id="7")
    text, values, sizes = heard[0]
    assert text.count("?") == 4 and values == ["ü", b"x", "{}", "7"]
    assert sizes == [LONG_TEXT, LONG_BYTES, LONG_TEXT, None]


def test_an_error_of_a_bulk_insert_is_ours(sqlserver):
    command = Command("INSERT deadlock\nVALUES\n(:id, :milliseconds, :headers, :body)", "orders")
    with (
        pytest.raises(TransientDatabaseError, match=r"queue orders.*another try"),
        sqlserver.transaction() as transaction,
    ):
        transaction.insert(command, [row(1)])


def test_the_limits_are_those_of_the_server():
    assert SqlServerDriver.values_per_statement <= 2_100
    assert Driver.rows_per_insert * len(Row._fields) <= Driver.values_per_statement


def test_a_server_that_does_not_report_its_isolation_level_is_refused_with_the_next_step(heard, monkeypatch):
    monkeypatch.setattr(Cursor, "fetchone", lambda cursor: None)
    engine = create_engine("mssql+pyodbc://host/shop?driver=x", creator=lambda: Connection(heard), _initialize=False)
    words = r"at an unknown level, .*execution_options\(isolation_level="
    with pytest.raises(ConfigurationError, match=words), Database(engine).transaction():
        pass
    engine.dialect.default_isolation_level = "READ COMMITTED"
    with Database(engine.execution_options(isolation_level="READ COMMITTED")).transaction():
        pass


def test_a_server_that_fails_when_it_is_asked_for_its_level_is_our_error(heard, monkeypatch):
    def execute(cursor, text, parameters=()):
        if "sys." in text:
            raise pyodbc.OperationalError("08S01", "[08S01] [Microsoft]Communication link failure (0) (SQLExecDirectW)")

    monkeypatch.setattr(Cursor, "execute", execute)
    engine = create_engine("mssql+pyodbc://host/shop?driver=x", creator=lambda: Connection(heard), _initialize=False)
    with pytest.raises(DatabaseUnavailableError, match="Communication link failure"), Database(engine).transaction():
        pass
