import logging

import pytest
from sqlalchemy import create_engine

from queue_pipeline.transport import InstallOptions, new_message
from queue_pipeline.transport import transport as transport_module
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.errors import ConfigurationError, QueueNotFoundError
from queue_pipeline.transport.index_audit import IndexAuditor, Severity
from queue_pipeline_tests.support.waiting import eventually

INT4 = 2**31 - 1
DROP = {
    "sqlite": {
        "missing_expires_index": 'DROP INDEX "orders_Expires"',
        "missing_due_index": 'DROP INDEX "orders.Delayed_Due"',
    },
    "postgresql": {
        "missing_row_version_index": 'ALTER TABLE {schema}.orders DROP CONSTRAINT "orders_seq_key"',
        "missing_expires_index": 'DROP INDEX {schema}."orders_Expires"',
        "missing_due_index": 'DROP INDEX {schema}."orders.Delayed_Due"',
    },
    "sqlserver": {
        "missing_row_version_index": "DROP INDEX [Index_RowVersion] ON [{schema}].[orders]",
        "missing_expires_index": "DROP INDEX [Index_Expires] ON [{schema}].[orders]",
        "missing_due_index": "DROP INDEX [Index_Due] ON [{schema}].[orders.Delayed]",
    },
}
LEGACY_COLUMNS = {
    "id": "[Id] uniqueidentifier NOT NULL",
    "correlationid": "[CorrelationId] varchar(255) NULL",
    "replytoaddress": "[ReplyToAddress] varchar(255) NULL",
    "recoverable": "[Recoverable] bit NOT NULL",
    "expires": "[Expires] datetime NULL",
    "headers": "[Headers] nvarchar(max) NOT NULL",
    "body": "[Body] varbinary(max) NULL",
    "rowversion": "[RowVersion] bigint IDENTITY(1, 1) NOT NULL",
}


def codes(transport, *queues):
    return [finding.code for finding in transport.audit_indexes(*queues)]


def mend(transport, finding):
    """Run a finding's statements as a database administrator would: one by one, in no transaction."""
    engine = create_engine(transport.database.engine.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in transport.database.dialect.split_script(finding.mend):
            cursor = connection.exec_driver_sql(statement).cursor
            while getattr(cursor, "nextset", bool)():
                pass
    engine.dispose()


def drop(backend, transport, code):
    if code not in DROP[backend.name]:
        pytest.skip("RowVersion is the table itself on SQLite; no index of it can be dropped")
    backend.sql(transport, DROP[backend.name][code].format(schema=backend.schema))


@pytest.fixture
def forgetful(monkeypatch):
    """A process that has not warned of anything yet."""
    monkeypatch.setattr(transport_module, "_warned", set())


@pytest.mark.parametrize(
    "options",
    [InstallOptions(), InstallOptions(body_string=True), InstallOptions(heap=True)],
    ids=["plain", "body string", "heap"],
)
def test_freshly_installed_queues_give_no_finding(backend, options):
    """IT-01: a freshly created queue stores headers as Unicode, so nothing warns of lost characters."""
    if options.heap and backend.name != "sqlserver":
        pytest.skip("a heap is a choice of SQL Server's")
    transport = backend.transport()
    transport.install("orders", "my.Queue" if backend.name != "postgresql" else '"my.Queue"', options=options)
    assert transport.audit_indexes() == []
    command = transport.database.dialect.statement("schema.columns", queue=transport.resolve("orders"))
    with transport.database.transaction() as transaction:
        columns = transaction.rows(command)
    types = {name.lower(): kind.lower() for name, kind in columns}
    assert types["headers"] == {"sqlserver": "nvarchar"}.get(backend.name, "text")


@pytest.mark.parametrize("code", ["missing_row_version_index", "missing_expires_index", "missing_due_index"])
def test_a_dropped_index_is_exactly_one_finding_and_its_statement_mends_it(backend, transport, code):
    drop(backend, transport, code)
    (finding,) = transport.audit_indexes("orders")
    assert finding.code == code
    assert finding.severity is Severity.WARNING
    assert finding.queue == transport.resolve("orders").canonical
    mend(transport, finding)
    assert transport.audit_indexes("orders") == []


def test_without_a_queue_named_every_queue_is_audited(backend, transport):
    transport.install("invoices")
    drop(backend, transport, "missing_expires_index")
    (finding,) = transport.audit_indexes()
    assert finding.queue == transport.resolve("orders").canonical


def test_a_queue_without_a_delayed_table_is_not_blamed_for_it(transport):
    assert codes(transport, "error") == []


def test_an_index_of_another_name_serves_as_well(backend, transport):
    drop(backend, transport, "missing_expires_index")
    table = transport.resolve("orders").qualified
    backend.sql(transport, f"CREATE INDEX somebodys_own ON {table} (Expires)")
    assert codes(transport, "orders") == []


def test_names_that_need_quoting_are_audited_and_mended(backend):
    transport = backend.transport()
    name = {"sqlite": 'it\'s "1"; x', "postgresql": '"It\'s ""1""; x"', "sqlserver": "It's 1; x"}[backend.name]
    transport.install(name)
    assert codes(transport, name) == []
    table = transport.resolve(name)
    index = {
        "sqlserver": f"[Index_Expires] ON [{backend.schema}].[{table.table}]",
        "postgresql": f'{backend.schema}."It\'s ""1""; x_Expires"',
        "sqlite": '"it\'s ""1""; x_Expires"',
    }[backend.name]
    backend.sql(transport, f"DROP INDEX {index}")
    (finding,) = transport.audit_indexes(name)
    assert finding.code == "missing_expires_index"
    mend(transport, finding)
    assert codes(transport, name) == []


def test_a_missing_queue_is_an_error_of_the_audit_and_none_of_the_check(transport, caplog):
    with pytest.raises(QueueNotFoundError):
        transport.audit_indexes("nowhere")
    auditor = IndexAuditor(transport.database, transport.book)
    assert auditor.missing_indexes(transport.resolve("nowhere")) == []
    assert caplog.records == []


def test_a_table_that_is_no_queue_is_refused(transport):
    with pytest.raises(ConfigurationError, match="is no queue: its table lacks"):
        transport.audit_indexes("QueueClaims")


def test_missing_indexes_are_warned_of_once_in_a_process(backend, transport, forgetful, caplog):
    """A missing index does not stop a receive; it is told when the queue is first received from."""
    drop(backend, transport, "missing_expires_index")
    for _ in range(3):
        with backend.transport().receive("orders"):
            pass
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    (finding,) = transport.audit_indexes("orders")
    assert record.getMessage() == str(finding)
    assert f"mend it with: {finding.mend}" in record.getMessage()


def test_an_intact_queue_is_received_from_without_a_warning(transport, forgetful, caplog):
    with transport.receive("orders"):
        pass
    assert caplog.records == []


def test_a_check_that_fails_is_one_warning_and_the_receive_goes_on(transport, forgetful, caplog, monkeypatch):
    transport.send("orders", new_message(b"{}"))
    statement = type(transport.database.dialect).statement

    def broken(dialect, name, **names):
        if name == "audit.indexes":
            return Command("SELECT nothing FROM nowhere_at_all")
        return statement(dialect, name, **names)

    monkeypatch.setattr(type(transport.database.dialect), "statement", broken)
    for _ in range(2):
        with transport.receive("orders", 1) as batch:
            count = len(batch)
        assert count in (0, 1)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    start = f"checking indexes of {transport.resolve('orders').canonical} failed: "
    assert record.getMessage().startswith(start)
    assert transport.peek("orders") == 0


# SQLite


def test_a_row_version_that_is_not_the_rowid_is_found_and_mended_with_all_messages_kept(sqlite):
    transport = sqlite.transport()
    sqlite.sql(
        transport,
        "CREATE TABLE orders (Id TEXT NOT NULL, Expires TEXT, Headers TEXT NOT NULL, Body BLOB, RowVersion BIGINT)",
    )
    for number, row_version in [(2, 20), (3, None), (1, 10)]:
        values = (str(number), "{}", b"%d" % number, row_version)
        sqlite.sql(transport, "INSERT INTO orders (Id, Headers, Body, RowVersion) VALUES (?, ?, ?, ?)", values)
    by_code = {finding.code: finding for finding in transport.audit_indexes("orders")}
    assert set(by_code) == {"missing_row_version_index", "missing_expires_index", "wrong_column_type"}
    mend(transport, by_code["missing_row_version_index"])
    mend(transport, by_code["wrong_column_type"])
    assert codes(transport, "orders") == []
    with transport.receive("orders") as batch:
        assert [message.body for message in batch] == [b"1", b"2", b"3"]


# PostgreSQL


def reference_queue(postgresql, transport, seq="serial NOT NULL UNIQUE"):
    """A queue as the reference makes it: its numbers have 32 bits, and Expires has no index."""
    table = transport.resolve("orders").qualified
    postgresql.sql(
        transport,
        f"CREATE TABLE {table} (id uuid NOT NULL PRIMARY KEY, expires timestamp, headers text NOT NULL, "
        f"body bytea, seq {seq})",
    )
    return table


@pytest.mark.parametrize("seq", ["serial NOT NULL UNIQUE", "integer GENERATED BY DEFAULT AS IDENTITY UNIQUE"])
def test_a_queue_of_the_reference_can_be_mended_before_its_numbers_run_out(postgresql, seq):
    transport = postgresql.transport()
    table = reference_queue(postgresql, transport, seq)
    missing, short = transport.audit_indexes("orders")
    assert missing.code == "missing_expires_index"
    assert (short.code, short.severity) == ("short_sequence", Severity.INFO)
    assert "0 % of that is used" in short.message

    postgresql.sql(transport, "SELECT setval(pg_get_serial_sequence(?, 'seq'), ?)", (table, INT4 - 1))
    short = transport.audit_indexes("orders")[1]
    assert (short.code, short.severity) == ("short_sequence", Severity.WARNING)
    assert "2,147,483,647, and 99 % of that is used" in short.message

    mend(transport, missing)
    mend(transport, short)
    assert transport.audit_indexes("orders") == []
    transport.send("orders", [new_message(b"{}") for _ in range(3)])
    with transport.receive("orders") as batch:
        assert [message.row_version for message in batch] == [INT4, INT4 + 1, INT4 + 2]


def test_a_large_column_behind_a_sequence_of_32_bits_is_found_and_mended(postgresql):
    transport = postgresql.transport()
    transport.install("orders")
    postgresql.sql(transport, f"ALTER SEQUENCE {postgresql.schema}.orders_seq_seq MAXVALUE {INT4}")
    (finding,) = transport.audit_indexes("orders")
    assert finding.code == "short_sequence"
    mend(transport, finding)
    assert transport.audit_indexes("orders") == []


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("id", "id TYPE text"),
        ("headers", "headers TYPE varchar(4000)"),
        ("headers", "headers TYPE jsonb USING CAST(headers AS jsonb)"),
        ("body", "body TYPE text USING convert_from(body, 'UTF8')"),
        ("expires", "expires TYPE timestamptz USING expires AT TIME ZONE 'UTC'"),
    ],
)
def test_a_column_of_another_type_is_found_and_mended_without_changing_its_values(postgresql, column, wrong):
    transport = postgresql.transport()
    transport.install("orders")
    transport.send("orders", new_message(b'{"path": "C:\\\\temp \xc3\xa4"}'))
    table = transport.resolve("orders").qualified
    row = f"SELECT id, CAST(headers AS jsonb), body, expires, seq FROM {table}"
    postgresql.sql(transport, f"UPDATE {table} SET expires = '2030-01-01 12:00:00.123'")
    before = postgresql.sql(transport, row)
    postgresql.sql(transport, f"ALTER TABLE {table} ALTER COLUMN {wrong}")
    (finding,) = transport.audit_indexes("orders")
    assert finding.code == "wrong_column_type"
    assert f"column {column} is" in finding.message
    mend(transport, finding)
    assert transport.audit_indexes("orders") == []
    assert postgresql.sql(transport, row) == before


def test_an_index_that_is_not_valid_or_gives_no_order_does_not_count(postgresql):
    transport = postgresql.transport()
    transport.install("orders")
    drop(postgresql, transport, "missing_row_version_index")
    table = transport.resolve("orders").qualified
    postgresql.sql(transport, f"CREATE INDEX ON {table} USING hash (seq)")
    postgresql.sql(transport, f"CREATE INDEX ON {table} (abs(seq))")
    assert codes(transport, "orders") == ["missing_row_version_index"]


def test_dead_rows_are_vacuumed_and_the_pages_that_stay_are_given_back(postgresql):
    transport = postgresql.transport()
    transport.install("orders")
    table = transport.resolve("orders").qualified
    postgresql.sql(transport, f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
    transport.send("orders", [new_message(b"x" * 1_000) for _ in range(20_000)])
    assert codes(transport, "orders") == []
    # The last message stays, so that a vacuum cannot cut the table off before it.
    postgresql.sql(transport, f"DELETE FROM {table} WHERE seq < (SELECT max(seq) FROM {table})")
    transport.close()  # a session that ends reports its figures

    (dead,) = eventually(lambda: transport.audit_indexes("orders"))
    assert (dead.code, dead.severity) == ("dead_rows", Severity.WARNING)
    assert "for 1 rows and 19,999 dead ones" in dead.message
    transport.close()
    mend(transport, dead)

    (empty,) = eventually(lambda: [f for f in transport.audit_indexes("orders") if f.code == "page_bloat"])
    assert empty.severity is Severity.INFO
    assert "locks the table" in empty.cost
    transport.close()
    mend(transport, empty)
    assert transport.audit_indexes("orders") == []


@pytest.mark.parametrize("sees_sequence", [True, False])
def test_an_account_that_may_only_read_write_and_delete_can_audit(postgresql, postgres, caplog, sees_sequence):
    owner = postgresql.transport()
    table = reference_queue(postgresql, owner)
    owner.install("orders")
    account = f"runtime_{postgresql.schema}"
    postgres.run_sql(f"""
        CREATE ROLE {account} LOGIN PASSWORD 'secret';
        GRANT USAGE ON SCHEMA {postgresql.schema} TO {account};
        GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {account};
    """)
    if sees_sequence:
        postgres.run_sql(f"GRANT USAGE ON SEQUENCE {postgresql.schema}.orders_seq_seq TO {account}")
    postgresql.url = postgres.url(user=account, password="secret")
    transport = postgresql.transport()
    (finding,) = transport.audit_indexes("orders")
    assert finding.code == "short_sequence"
    assert ("0 % of that" if sees_sequence else "an unknown part of that") in finding.message
    assert IndexAuditor(transport.database, transport.book).missing_indexes(transport.resolve("orders")) == []
    assert caplog.records == []


# SQL Server


@pytest.mark.parametrize(
    ("headers", "row_version", "expires", "expected"),
    [
        ("varchar", "CLUSTERED", None, {"missing_expires_index", "varchar_headers"}),
        ("varchar", "CLUSTERED", "INCLUDE (Id, RowVersion)", {"varchar_headers"}),
        ("nvarchar", "CLUSTERED", "INCLUDE (Id, RowVersion)", set()),
        ("nvarchar", "CLUSTERED", "INCLUDE (Id, RowVersion) WHERE Expires IS NOT NULL", set()),
        ("nvarchar", "NONCLUSTERED", "INCLUDE (Id, RowVersion) WHERE Expires IS NOT NULL", set()),
        ("nvarchar", None, None, {"missing_row_version_index", "missing_expires_index"}),
    ],
    ids=["1.x to 2.2.1", "2.2.2 to 2.2.5", "2.2.6 to 3.0", "3.1 to 6.0", "6.0.1 and later", "by hand"],
)
def test_tables_of_every_version_are_judged_by_what_they_lack(sqlserver, headers, row_version, expires, expected):
    """IT-01: the type of the headers column is told; varchar is a legacy of the first versions."""
    transport = sqlserver.transport()
    table = f"[{sqlserver.schema}].[orders]"
    columns = LEGACY_COLUMNS | {"headers": f"[Headers] {headers}(max) NOT NULL"}
    sqlserver.sql(transport, f"CREATE TABLE {table} ({', '.join(columns.values())})")
    if row_version:
        sqlserver.sql(transport, f"CREATE {row_version} INDEX Index_RowVersion ON {table} (RowVersion)")
    if expires:
        sqlserver.sql(transport, f"CREATE INDEX Index_Expires ON {table} (Expires) {expires}")
    assert set(codes(transport, "orders")) == expected
    if sqlserver.is_babelfish and "varchar_headers" in expected:
        pytest.skip("found; not mended, as Babelfish refuses NOT NULL in ALTER COLUMN")
    for finding in transport.audit_indexes("orders"):
        mend(transport, finding)
    assert transport.audit_indexes("orders") == []


def test_a_table_without_the_column_recoverable_is_no_finding(sqlserver):
    transport = sqlserver.transport()
    transport.install("orders")
    sqlserver.sql(transport, f"ALTER TABLE [{sqlserver.schema}].[orders] DROP COLUMN [Recoverable]")
    assert codes(transport, "orders") == []


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("rowversion", "[RowVersion] int IDENTITY(1, 1) NOT NULL"),
        ("id", "[Id] varchar(36) NOT NULL"),
        ("body", "[Body] varchar(max) NULL"),
    ],
)
def test_a_column_of_another_type_is_found_with_the_statement_for_it(sqlserver, column, wrong):
    transport = sqlserver.transport()
    table = f"[{sqlserver.schema}].[orders]"
    columns = LEGACY_COLUMNS | {column: wrong}
    sqlserver.sql(transport, f"CREATE TABLE {table} ({', '.join(columns.values())})")
    sqlserver.sql(transport, f"CREATE CLUSTERED INDEX Index_RowVersion ON {table} (RowVersion)")
    sqlserver.sql(transport, f"CREATE INDEX Index_Expires ON {table} (Expires) INCLUDE (Id, RowVersion)")
    (finding,) = transport.audit_indexes("orders")
    assert finding.code == "wrong_column_type"
    assert f"column {column} is" in finding.message
    if sqlserver.is_babelfish and column != "body":
        pytest.skip("Babelfish refuses NOT NULL in ALTER COLUMN, and DROP INDEX with the catalog's name")
    mend(transport, finding)
    assert codes(transport, "orders") == []


def test_a_server_that_does_not_tell_pages_is_audited_without_them(sqlserver, caplog):
    if not sqlserver.is_babelfish:
        pytest.skip("this server has sys.dm_db_partition_stats")
    transport = sqlserver.transport()
    transport.install("orders", options=InstallOptions(heap=True))
    with caplog.at_level(logging.DEBUG):
        assert transport.audit_indexes("orders") == []
    told = [record for record in caplog.records if "pages of" in record.getMessage()]
    assert told and all(record.levelno == logging.DEBUG for record in told)


def test_empty_pages_of_a_heap_are_found_and_given_back(sqlserver):
    if sqlserver.is_babelfish:
        pytest.skip("Babelfish has neither heaps of its own nor sys.dm_db_partition_stats")
    transport = sqlserver.transport()
    transport.install("orders", options=InstallOptions(heap=True))
    transport.send("orders", [new_message(b"x" * 3_000) for _ in range(6_000)])
    for _ in range(6):
        with transport.receive("orders", 1_000):
            pass
    (finding,) = transport.audit_indexes("orders")
    assert finding.code == "page_bloat"
    mend(transport, finding)
    assert codes(transport, "orders") == []
