"""A command on its way to the driver: its values are bound by name, and a name is sent as it is."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queue_pipeline.errors import AddressError, DatabaseError, TableNotFoundError
from queue_pipeline.transport import QueueAddress
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.setting import database_url

SETTINGS = {
    "sqlite": "sqlite:///queues.db",
    "psycopg": "postgresql://host/db",
    "psqlodbc": "postgresql+pyodbc://host/db?driver=PostgreSQL+Unicode",
    "sqlserver": "mssql:///?odbc_connect=DRIVER%3Dx",
}
HOSTILE = [
    "at :noon",
    ":limit",
    "a::b",
    r"a\:b",
    "ends:",
    "100 % of (limit)s and %s",
    "what? $1 ?",
    "{queue} }{",
    "--; /* :limit */ DROP TABLE x",
    "ü\U0001f600",
]


@pytest.fixture(scope="module", params=SETTINGS)
def database(request) -> Database:
    return Database(database_url(SETTINGS[request.param]))


@pytest.fixture
def sqlite(tmp_path):
    database = Database(database_url(f"sqlite:///{tmp_path / 'queues.db'}"))
    yield database
    database.close()


def sent(database: Database, command: Command) -> str:
    """A statement as the driver takes it; the drivers that take percent signs for values read a double one as one."""
    text = database.compiled(command.text)[0]
    return text.replace("%%", "%") if database.engine.dialect.paramstyle == "pyformat" else text


# --- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"a": 1}, r"missing: \['b'\].*not have: \[\]"),
        ({"a": 1, "b": 2, "c": 3}, r"missing: \[\].*not have: \['c'\]"),
        ({"A": 1, "b": 2}, r"missing: \['a'\].*not have: \['A'\]"),
        ({}, r"missing: \['a', 'b'\]"),
    ],
)
def test_a_missing_or_superfluous_value_is_an_error_at_the_call(sqlite, values, words):
    """And before anything reaches the database: the transaction goes on."""
    command = Command("SELECT :a, :b")
    with sqlite.transaction() as transaction:
        for run in (transaction.rows, transaction.execute, transaction.count, transaction.read):
            with pytest.raises(TypeError, match=words):
                run(command, **values)
        assert transaction.rows(command, a=1, b=2) == [(1, 2)]


def test_the_error_names_the_section_that_the_statement_came_from(sqlite):
    queue = AddressBook(sqlite.dialect).resolve("orders")
    command = sqlite.dialect.statement("nservicebus/queue.peek", queue=queue)
    with (
        sqlite.transaction() as transaction,
        pytest.raises(TypeError, match=r"sql/sqlite/nservicebus/queue\.sql: peek"),
    ):
        transaction.rows(command, most=1)


def test_a_value_may_stand_in_several_places_and_hold_anything(sqlite):
    value = "'; DROP TABLE x; -- :b %(b)s ? \\"
    with sqlite.transaction() as transaction:
        assert transaction.rows(Command("SELECT :a, :b, :a"), a=value, b=None) == [(value, None, value)]


def test_a_cast_an_escaped_colon_and_a_time_are_no_values(database):
    command = Command(r"SELECT x::int, '12\:30\:00', :a")
    command.check({"a": 1})
    assert command.script == "SELECT x::int, '12:30:00', :a"
    assert sent(database, command).startswith("SELECT x::int, '12:30:00', ")


@pytest.mark.parametrize("rows", [1, 2, 300])
def test_an_insert_of_many_rows_binds_each_of_them(sqlite, rows):
    create = Command("CREATE TABLE t (n int, word text, batch text)")
    insert = Command("INSERT INTO t (n, word, batch)\nSELECT column1, column2, :batch FROM (\nVALUES\n(:n, :word)\n)")
    assert insert.row_values == ("n", "word")
    values = {f"n_{n}": n for n in range(rows)} | {f"word_{n}": f"w{n}" for n in range(rows)}
    with sqlite.transaction() as transaction:
        transaction.execute(create)
        assert transaction.count(insert.repeated(rows), batch="b", **values) == rows
        found = transaction.rows(Command("SELECT n, word, batch FROM t ORDER BY n"))
    assert found == [(n, f"w{n}", "b") for n in range(rows)]


# --- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_sent_as_it_is_whatever_it_holds(database, name):
    queue = AddressBook(database.dialect).resolve(QueueAddress(name))
    command = database.dialect.statement("nservicebus/queue.peek", queue=queue)
    command.check({"limit": 1})
    assert queue.qualified in command.script
    assert queue.qualified in sent(database, command)


@given(name=st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(r"\:%?{}a$"), min_size=1))
@example(name="\\")
@example(name=r"\\:")
@example(name="::::")
@example(name="%%")
@example(name="%(limit)s")
def test_any_name_is_one_name_and_adds_no_value(database, name):
    try:
        queue = AddressBook(database.dialect).resolve(QueueAddress(name))
    except AddressError:
        return
    command = database.dialect.statement("nservicebus/queue.peek", queue=queue)
    command.check({"limit": 1})
    assert queue.qualified in command.script
    assert queue.qualified in sent(database, command)
    assert len(database.compiled(command.text)[1] or ["limit"]) == 1


@pytest.mark.parametrize("name", ["%(limit)s", "a %(b)s c", "%%(", "__[POSTCOMPILE_limit]"])
def test_a_name_that_sqlalchemy_would_take_for_a_value_is_refused(database, name):
    """A message may name such a queue for its reply: the message is to blame, and not the batch."""
    for address in (QueueAddress(name), QueueAddress("orders", name)):
        with pytest.raises(AddressError, match="read as a value"):
            AddressBook(database.dialect).resolve(address)


@pytest.mark.parametrize("name", HOSTILE)
def test_the_database_finds_the_table_of_that_name(sqlite, name):
    quoted = sqlite.dialect.quote(name).replace(":", r"\:")
    with sqlite.transaction() as transaction:
        transaction.execute(Command(f"CREATE TABLE {quoted} (n int)"))
        assert transaction.count(Command(f"INSERT INTO {quoted} (n) VALUES (:n)"), n=7) == 1
        assert transaction.rows(Command(f"SELECT n FROM {quoted} WHERE n % :m = 0"), m=7) == [(7,)]
        assert transaction.rows(Command("SELECT name FROM sqlite_master")) == [(name,)]


# --- results -----------------------------------------------------------------------------------------------


def test_a_count_is_the_number_that_is_selected_else_that_of_the_rows_touched(sqlite):
    with sqlite.transaction() as transaction:
        transaction.execute(Command("CREATE TABLE t (n int)"))
        assert transaction.count(Command("INSERT INTO t VALUES (1), (2), (3)")) == 3
        assert transaction.count(Command("SELECT 42")) == 42
        assert transaction.count(Command("UPDATE t SET n = n + 1 WHERE n > :n"), n=1) == 2
        assert transaction.count(Command("DELETE FROM t WHERE n > :n"), n=9) == 0
        assert transaction.count(Command("SELECT n FROM t WHERE n > :n"), n=9) == 0
        assert transaction.rows(Command("DELETE FROM t WHERE n > :n RETURNING n"), n=9) == []


def test_an_error_names_the_queue_or_the_table_of_the_command(sqlite):
    for command, words in (
        (Command("SELECT * FROM nowhere", table="shop.totals"), "table shop.totals does not exist"),
        (Command("SELECT * FROM nowhere"), "queue-pipeline install"),
    ):
        with pytest.raises(TableNotFoundError, match=re.escape(words)), sqlite.transaction() as transaction:
            transaction.rows(command)
    with pytest.raises(DatabaseError, match=r"queue orders: .*syntax"), sqlite.transaction() as transaction:
        transaction.rows(Command("SELEKT", "orders"))


def test_statements_full_of_rows_do_not_pile_up(sqlite):
    """What is kept is bounded, however many different statements there are."""
    with sqlite.transaction() as transaction:
        for number in range(1_200):
            transaction.rows(Command(f"SELECT {number}"))
    assert sqlite.clause.cache_info().currsize <= 1_000
