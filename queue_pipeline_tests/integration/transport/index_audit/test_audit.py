"""Indexes and column types of queues: what is missing is found, and the statement of each finding fixes it."""

import logging

import pytest

from queue_pipeline.errors import ConfigurationError, QueueNotFoundError
from queue_pipeline.transport import InstallOptions, new_message
from queue_pipeline.transport import transport as transport_module
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.index_audit.audit import Severity, indexes_to_warn_of
from queue_pipeline_tests.support.databases.index_audit import codes, drop, fix

pytestmark = pytest.mark.both_drivers


@pytest.fixture
def forgetful(monkeypatch):
    """A process that has not warned of anything yet."""
    monkeypatch.setattr(transport_module, "_warned", set())


@pytest.mark.parametrize("options", [InstallOptions(), InstallOptions(body_string=True)], ids=["plain", "body string"])
def test_freshly_installed_queues_give_no_finding(backend, options):
    """IT-01: a freshly created queue stores headers as Unicode, so nothing warns of lost characters."""
    transport = backend.transport()
    transport.install("orders", "my.Queue" if backend.name != "postgresql" else '"my.Queue"', options=options)
    assert transport.audit_indexes() == []
    command = transport.database.dialect.statement("schema.columns", queue=transport.resolve("orders"))
    with transport.database.transaction() as transaction:
        columns = transaction.rows(command)
    types = {name.lower(): kind.lower() for name, kind in columns}
    assert types["headers"] == {"sqlserver": "nvarchar"}.get(backend.name, "text")


@pytest.mark.parametrize("code", ["missing_row_version_index", "missing_expires_index", "missing_due_index"])
def test_a_dropped_index_is_exactly_one_finding_and_its_statement_fixes_it(backend, transport, code):
    drop(backend, transport, code)
    (finding,) = transport.audit_indexes("orders")
    assert finding.code == code
    assert finding.severity is Severity.WARNING
    assert finding.queue == transport.resolve("orders").canonical
    fix(transport, finding)
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


def test_names_that_need_quoting_are_audited_and_fixed(backend):
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
    fix(transport, finding)
    assert codes(transport, name) == []


def test_a_missing_queue_is_an_error_of_the_audit_and_none_of_the_check(transport, caplog):
    with pytest.raises(QueueNotFoundError):
        transport.audit_indexes("nowhere")
    assert indexes_to_warn_of(transport.layouts, transport.resolve("nowhere")) == []
    assert caplog.records == []


def test_a_table_that_is_no_queue_is_refused(transport):
    with pytest.raises(ConfigurationError, match="is no queue: its table lacks"):
        transport.audit_indexes("QueueClaims")


def test_missing_indexes_cause_one_warning_per_process(backend, transport, forgetful, caplog):
    """A missing index does not stop a receive; the first receive from the queue warns."""
    drop(backend, transport, "missing_expires_index")
    for _ in range(3):
        with backend.transport().receive("orders"):
            pass
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    (finding,) = transport.audit_indexes("orders")
    assert record.getMessage() == str(finding)
    assert f"fix it with: {finding.fix}" in record.getMessage()


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
    received = []
    for _ in range(2):
        with transport.receive("orders", 1) as batch:
            received.append(len(batch))
    assert received == [1, 0]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    start = f"checking indexes of {transport.resolve('orders').canonical} failed: "
    assert record.getMessage().startswith(start)
    assert transport.peek("orders") == 0


def test_a_row_version_that_is_not_the_rowid_is_found_and_fixed_with_all_messages_kept(sqlite):
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
    fix(transport, by_code["missing_row_version_index"])
    fix(transport, by_code["wrong_column_type"])
    assert codes(transport, "orders") == []
    with transport.receive("orders") as batch:
        assert [message.body for message in batch] == [b"1", b"2", b"3"]
