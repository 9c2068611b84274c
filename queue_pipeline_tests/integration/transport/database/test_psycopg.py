"""PostgreSQL through psycopg, beside ODBC: what COPY writes, what becomes of errors, and the types of what is read."""

import contextlib
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import create_engine, event, text

from queue_pipeline.errors import (
    AccessDeniedError,
    DatabaseError,
    DatabaseUnavailableError,
    InvalidMessageError,
    QueueNotFoundError,
)
from queue_pipeline.transport import (
    MessageColumns,
    Operation,
    OutgoingMessage,
    QueueAddress,
    QueueTransport,
    TransactionMode,
    new_message,
)
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.database.setting import database_url
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.send import COPIED_TYPES
from queue_pipeline_tests.support.databases.backends import PSYCOPG, PYODBC
from queue_pipeline_tests.support.databases.sessions import kill, pid_of

pytestmark = pytest.mark.psycopg_only

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def odbc(backend, postgres, transport):
    """Another transport on the same queues."""
    with QueueTransport(postgres.url(driver=PYODBC), schema=backend.schema) as transport:
        yield transport


@pytest.fixture
def copies(monkeypatch):
    """The queues that were copied into."""
    found, genuine = [], Transaction.copy

    def copy(transaction, command, types, rows):
        found.append(command.queue)
        genuine(transaction, command, types, rows)

    monkeypatch.setattr(Transaction, "copy", copy)
    return found


@contextlib.contextmanager
def own_engine(postgres, **options):
    """An engine of the caller's own."""
    engine = create_engine(database_url(postgres.url(driver=PSYCOPG, **options)))
    try:
        yield engine
    finally:
        engine.dispose()


def copy(transport, transaction, queue, rows):
    command = transport.database.dialect.statement("nservicebus/queue.copy", queue=queue)
    transaction.copy(command, COPIED_TYPES, rows)


def row(headers, body=b""):
    return uuid.uuid4().bytes, headers, body


def stored(backend, transport, queue="orders"):
    table = transport.resolve(queue).qualified
    return [tuple(row) for row in backend.sql(transport, f"SELECT body, expires FROM {table} ORDER BY seq")]


# --- COPY --------------------------------------------------------------------------------------------------


BODIES = [b"", b"\x00", b"plain", "ünï \U0001f600".encode(), bytes(range(256)), b"\x1e" * 3, b"x" * (1 << 20), b""]


def test_bodies_of_all_kinds_arrive_in_the_order_of_sending(backend, transport, copies):
    transport.send("orders", [OutgoingMessage(body) for body in BODIES])
    assert stored(backend, transport) == [(body, None) for body in BODIES]
    assert copies == [transport.resolve("orders").canonical]
    with transport.receive("orders", 100) as batch:
        assert [message.body for message in batch] == BODIES


def test_both_drivers_read_what_either_wrote(transport, odbc):
    headers = {"ключ \U0001f680": "значение \U0001f600", "引用": '"\\/\r\n\t', "empty": "", "%s ?": "%(x)s $1"}
    messages = [OutgoingMessage(body, {**headers, wire.MESSAGE_ID: str(n)}) for n, body in enumerate(BODIES)]
    for sender, receiver in ((transport, odbc), (odbc, transport), (transport, transport)):
        sender.send("orders", messages)
        with receiver.receive("orders", 100) as batch:
            assert [(message.headers, message.body) for message in batch] == [(m.headers, m.body) for m in messages]


def test_rows_are_the_same_byte_for_byte_as_through_odbc(backend, transport, odbc):
    message = new_message("ü", headers={"ä": "ö"})
    transport.send("orders", message)
    odbc.send("orders", message)
    table = transport.resolve("orders").qualified
    first, second = backend.sql(transport, f"SELECT expires, headers, body FROM {table} ORDER BY seq")
    assert first == second


def test_messages_that_expire_go_by_the_insert_statement(backend, transport, copies):
    lasting, passing = new_message("lasting"), new_message("passing", time_to_be_received=timedelta(hours=1))
    transport.send("orders", [lasting, passing, new_message("ü", delay=timedelta(hours=1))])
    (first, no_expiry), (second, expiry) = stored(backend, transport)
    assert (first, no_expiry, second) == (b"lasting", None, b"passing")
    assert isinstance(expiry, datetime) and expiry.tzinfo is None
    assert transport.status("orders")[0].delayed == 1
    assert copies == []


def test_many_that_expire_keep_their_order_and_bytes(backend, transport, copies):
    bodies = [bytes([n % 256]) * (n % 900) for n in range(3_000)]
    transport.send("orders", [new_message(body, time_to_be_received=timedelta(hours=1)) for body in bodies])
    assert [body for body, _ in stored(backend, transport)] == bodies
    assert copies == []


def test_columns_are_copied_as_well(backend, transport, copies):
    bodies = [str(number).encode() for number in range(5)]
    columns = ([f"m{n}" for n in range(5)], [NEVER_EXPIRES] * 5, ['{"ü": "%s"}'] * 5, bodies)
    assert transport.dispatch_columns([MessageColumns("orders", False, *columns)]) == 5
    assert stored(backend, transport) == [(body, None) for body in bodies]
    assert len(copies) == 1


def test_the_last_of_several_with_one_id_takes_the_place_of_the_first(backend, transport):
    def one(identity, body):
        return Operation("orders", OutgoingMessage(body, {wire.MESSAGE_ID: identity}))

    assert transport.dispatch([one("a", b"1"), one("b", b"2"), one("a", b"3")]) == 2
    assert [body for body, _ in stored(backend, transport)] == [b"3", b"2"]


def test_a_queue_with_the_worst_of_names_is_copied_into(transport):
    table = QueueAddress("o'r\"d%s;r--s /*?*/ $1 :a {queue}")
    transport.install(table)
    assert transport.send(table, [new_message("1"), new_message("2", time_to_be_received=timedelta(hours=1))]) == 2
    assert transport.send(table, new_message("3")) == 1
    with transport.receive(table, 10) as batch:
        assert [message.body for message in batch] == [b"1", b"2", b"3"]


# --- errors in the middle of a COPY ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("CREATE UNIQUE INDEX ON {} (body)", "duplicate key"),
        ("ALTER TABLE {} ADD CHECK (body <> 'again')", "check constraint"),
        ("ALTER TABLE {} DROP COLUMN body", 'column "body"'),
        ("ALTER TABLE {} ALTER headers TYPE varchar(10)", "too long"),
    ],
)
def test_an_error_of_the_server_undoes_all_and_names_the_queue(backend, transport, change, words):
    transport.install("billing")
    backend.sql(transport, change.format(transport.resolve("orders").qualified))
    messages = [Operation("billing", new_message("first"))]
    messages += [Operation("orders", new_message(body)) for body in ("once", "again", "again", *["x" * 1000] * 3_000)]
    with pytest.raises(DatabaseError, match=words) as raised:
        transport.dispatch(messages)
    assert transport.resolve("orders").canonical in str(raised.value)
    assert transport.peek("billing") == transport.peek("orders") == 0
    assert transport.send("billing", new_message("the connection is as good as new")) == 1


def test_a_nul_character_is_refused_and_nothing_is_written(transport):
    queue, rows = transport.resolve("orders"), [row("{}"), row("a\0b"), row("{}")]
    with pytest.raises(InvalidMessageError, match="NUL character"):
        transport.dispatch_columns([MessageColumns(queue, False, ["1"], [NEVER_EXPIRES], ["a\0b"], [b""])])
    with (
        pytest.raises(DatabaseError, match=r"orders.*invalid byte sequence"),
        transport.database.transaction() as transaction,
    ):
        copy(transport, transaction, queue, rows)
    assert transport.peek("orders") == 0


def test_a_missing_queue_and_a_missing_right_are_reported_as_through_odbc(backend, transport, postgres):
    with pytest.raises(QueueNotFoundError, match="queue-pipeline install"):
        transport.send("nowhere", new_message("{}"))
    postgres.run_sql("DROP ROLE IF EXISTS no_rights; CREATE ROLE no_rights LOGIN PASSWORD 'pw'")
    postgres.run_sql(f"GRANT USAGE ON SCHEMA {backend.schema} TO no_rights")
    url = postgres.url(user="no_rights", password="pw", driver=PSYCOPG)
    with (
        QueueTransport(url, schema=backend.schema) as poor,
        pytest.raises(AccessDeniedError, match=r"permission denied.*--grant-to"),
    ):
        poor.send("orders", new_message("{}"))


def test_an_error_while_rows_are_made_undoes_the_copy(transport):
    messages = [new_message("x" * 500) for _ in range(6_000)] + [OutgoingMessage(b"", {"n": 1})]
    with pytest.raises(InvalidMessageError, match="header 'n'"):
        transport.send("orders", messages)
    assert transport.peek("orders") == 0


# --- servers that go away ----------------------------------------------------------------------------------


def test_a_server_killed_in_the_middle_of_a_copy_is_unavailable_and_keeps_nothing(transport, postgres):
    queue = transport.resolve("orders")
    with (
        pytest.raises(DatabaseUnavailableError, match=r"orders.*check that it runs"),
        transport.database.transaction() as transaction,
    ):
        pid = pid_of(transaction.connection)

        def rows():
            for number in range(9):
                if number == 2:
                    # With the wait: a signal that comes late would let the COPY end, and only the commit fail.
                    kill(postgres, pid)
                yield row("{}", b"x" * 1_100_000)

        copy(transport, transaction, queue, rows())
    assert transport.database.engine.pool.checkedout() == 0
    assert transport.peek("orders") == 0
    assert transport.send("orders", new_message("{}")) == 1


def test_an_interrupt_in_the_middle_of_a_copy_keeps_nothing_and_gives_the_connection_back(transport):
    def rows():
        yield row("{}", b"x" * 1_100_000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), transport.transaction() as connection:
        transaction = transport.database.enlist(connection)
        pid = pid_of(connection)
        copy(transport, transaction, transport.resolve("orders"), rows())
    assert transport.database.engine.pool.checkedout() == 0
    with transport.transaction() as connection:
        assert pid_of(connection) == pid, "the connection is as good as before"
    assert transport.peek("orders") == 0


def test_an_idle_connection_is_asked_before_it_is_used_again(transport, postgres):
    for _ in range(2):
        with transport.transaction() as connection:
            pid, driver = pid_of(connection), connection.connection.driver_connection
        assert driver.info.transaction_status.name == "IDLE"
        kill(postgres, pid)
        assert transport.peek("orders") == 0
        assert driver.closed
    transport.close()
    with transport.transaction() as connection:
        kept = connection.connection.driver_connection
    transport.close()
    assert kept.closed


# --- statements of the caller's own ------------------------------------------------------------------------


def test_the_callers_statements_take_what_sqlalchemy_and_the_driver_take(transport):
    transport.send("orders", new_message("{}"))
    with transport.receive("orders", mode=TransactionMode.TRANSACTION_SCOPE) as batch:
        connection = batch.connection
        connection.exec_driver_sql("CREATE TEMPORARY TABLE ledger (n int, word text)")
        values = [{"n": 1, "word": "a?"}, {"n": 2, "word": "b%s"}]
        connection.execute(text("INSERT INTO ledger VALUES (:n, :word)"), values)
        with connection.connection.cursor() as cursor:
            cursor.execute("INSERT INTO ledger VALUES (%s, %s)", (3, "100 %"))
        found = connection.execute(text("SELECT word FROM ledger WHERE n % :m = 0 OR word = '100 %'"), {"m": 2})
        assert found.scalars().all() == ["b%s", "100 %"]


def test_a_connection_of_the_caller_is_left_unchanged(transport, postgres):
    """One of an engine that the transport does not have: it is joined, and not set up."""
    transport.send("orders", new_message("{}"))
    with own_engine(postgres) as engine, engine.connect() as own:
        own.exec_driver_sql("SET TIME ZONE 'Asia/Tokyo'")
        threshold = own.connection.driver_connection.prepare_threshold
        transport.send("orders", [new_message("by COPY"), new_message("too")], own)
        assert own.exec_driver_sql("SHOW TIME ZONE").scalar_one() == "Asia/Tokyo"
        assert own.connection.driver_connection.prepare_threshold == threshold is not None
        own.rollback()
    assert transport.peek("orders") == 1


def test_connections_may_be_supplied(transport, postgres, backend):
    """As for a token that is asked for with each connection."""
    opened = []

    def connect(dialect, record, arguments, options):
        opened.append(options.pop("password"))
        return psycopg.connect(*arguments, **options, password=postgres.password)

    with own_engine(postgres, password="nothing") as engine:
        event.listen(engine, "do_connect", connect)
        supplied = QueueTransport(engine, schema=backend.schema)
        for number in range(3):
            supplied.send("orders", new_message(str(number)))
        with supplied.receive("orders", 10) as batch:
            assert [message.body for message in batch] == [b"0", b"1", b"2"]
    assert opened == ["nothing"]


@pytest.mark.parametrize("own", [True, False], ids=["our engine", "the caller's"])
def test_nothing_is_prepared_on_the_server(transport, postgres, backend, own):
    """A plan that was made for an empty queue would read a full one from end to end."""
    with own_engine(postgres) as engine:
        sender = transport if own else QueueTransport(engine, schema=backend.schema)
        for _ in range(12):
            sender.send("orders", new_message("{}"))
            sender.peek("orders")
            with sender.receive("orders", 1):
                pass
        with sender.database.transaction() as transaction:
            for _ in range(12):
                transaction.rows(Command("SELECT CAST(:n AS int)"), n=1)
                transaction.read(Command("SELECT CAST(:n AS int)"), n=1)
            assert transaction.rows(Command("SELECT count(*) FROM pg_prepared_statements"))[0][0] == 0


# --- types -------------------------------------------------------------------------------------------------

SAME = [
    ("1::smallint", 1),
    ("1::bigint", 1),
    ("sum(1::bigint)", Decimal(1)),
    ("1.50", Decimal("1.50")),
    ("1.5::float8", 1.5),
    ("'x'::text", "x"),
    ("'x'::varchar(5)", "x"),
    ("'x'::char(3)", "x  "),
    ("'x'::name", "x"),
    ("''", ""),
    ("'\\x00ff'::bytea", b"\x00\xff"),
    ("'\\x'::bytea", b""),
    ("NULL", None),
    ("date '2024-02-29'", date(2024, 2, 29)),
    ("time '03:04:05.25'", time(3, 4, 5, 250_000)),
    ("timestamp '2024-02-29 03:04:05.123456'", datetime(2024, 2, 29, 3, 4, 5, 123456)),
]


@pytest.mark.parametrize(("expression", "value"), SAME)
def test_values_are_what_they_are_through_odbc_and_in_binary_form(transport, odbc, expression, value):
    command = Command(f"SELECT {expression}".replace("::", r"\:\:"))
    for reader in (transport, odbc):
        with reader.database.transaction() as transaction:
            for run in (transaction.rows, transaction.read):
                found = run(command)[0][0]
                assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("size", [0, 1, 1_000_000])
def test_bytes_are_read_in_binary_form(transport, size):
    """In hexadecimal digits they would be twice as long."""
    command = Command("SELECT CAST(repeat('x', :size) AS bytea)")
    formats = []
    genuine = psycopg.Connection.cursor

    def cursor(connection, *arguments, **options):
        formats.append(options.get("binary", False))
        return genuine(connection, *arguments, **options)

    with transport.database.transaction() as transaction, pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Connection, "cursor", cursor)
        assert transaction.read(command, size=size) == [(b"x" * size,)]
    assert formats[-1] is True


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("true", True),
        ("CAST('{1,2}' AS int[])", [1, 2]),
        ("CAST('{\"a\": 1}' AS jsonb)", {"a": 1}),
        ("CAST('pg_class' AS regclass)", "pg_class"),
        ("timestamptz '2024-02-29 03:04:05+02'", datetime(2024, 2, 29, 1, 4, 5, tzinfo=UTC)),
    ],
)
def test_types_that_odbc_converts_are_native_python_types(transport, expression, value):
    with transport.transaction() as connection:
        assert connection.exec_driver_sql(f"SELECT {expression}").scalar_one() == value
