"""The index audit on SQL Server: tables of every version of the reference, column types, and heaps."""

import logging

import pytest

from queue_pipeline.transport import InstallOptions, new_message
from queue_pipeline_tests.support.databases.index_audit import codes, fix

VARCHAR, NVARCHAR = "[Headers] varchar(max) NOT NULL", "[Headers] nvarchar(max) NOT NULL"
LEGACY_COLUMNS = {
    "id": "[Id] uniqueidentifier NOT NULL",
    "correlationid": "[CorrelationId] varchar(255) NULL",
    "replytoaddress": "[ReplyToAddress] varchar(255) NULL",
    "recoverable": "[Recoverable] bit NOT NULL",
    "expires": "[Expires] datetime NULL",
    "headers": NVARCHAR,
    "body": "[Body] varbinary(max) NULL",
    "rowversion": "[RowVersion] bigint IDENTITY(1, 1) NOT NULL",
}
every_version = pytest.mark.parametrize(
    ("headers", "row_version", "expires", "expected"),
    [
        (VARCHAR, "CLUSTERED", None, {"missing_expires_index", "varchar_headers"}),
        (VARCHAR, "CLUSTERED", "INCLUDE (Id, RowVersion)", {"varchar_headers"}),
        (NVARCHAR, "CLUSTERED", "INCLUDE (Id, RowVersion)", set()),
        (NVARCHAR, "CLUSTERED", "INCLUDE (Id, RowVersion) WHERE Expires IS NOT NULL", set()),
        (NVARCHAR, "NONCLUSTERED", "INCLUDE (Id, RowVersion) WHERE Expires IS NOT NULL", set()),
        (NVARCHAR, None, None, {"missing_row_version_index", "missing_expires_index"}),
    ],
    ids=["1.x to 2.2.1", "2.2.2 to 2.2.5", "2.2.6 to 3.0", "3.1 to 6.0", "6.0.1 and later", "by hand"],
)


def legacy_queue(sqlserver, column, declared, row_version="CLUSTERED", expires="INCLUDE (Id, RowVersion)"):
    """A transport with a queue as a version of the reference made it, but for the type of one column."""
    transport = sqlserver.transport()
    table = f"[{sqlserver.schema}].[orders]"
    columns = LEGACY_COLUMNS | {column: declared}
    sqlserver.sql(transport, f"CREATE TABLE {table} ({', '.join(columns.values())})")
    if row_version:
        sqlserver.sql(transport, f"CREATE {row_version} INDEX Index_RowVersion ON {table} (RowVersion)")
    if expires:
        sqlserver.sql(transport, f"CREATE INDEX Index_Expires ON {table} (Expires) {expires}")
    return transport


@every_version
def test_tables_of_every_version_are_judged_by_what_they_lack(sqlserver, headers, row_version, expires, expected):
    """IT-01: the type of the headers column is checked; varchar is a legacy of the first versions."""
    transport = legacy_queue(sqlserver, "headers", headers, row_version, expires)
    assert set(codes(transport, "orders")) == expected


@every_version
def test_tables_of_every_version_can_be_fixed(sqlserver, headers, row_version, expires, expected):
    if sqlserver.is_babelfish and "varchar_headers" in expected:
        pytest.skip("needs NOT NULL in ALTER COLUMN, which Babelfish refuses")
    transport = legacy_queue(sqlserver, "headers", headers, row_version, expires)
    for finding in transport.audit_indexes("orders"):
        fix(transport, finding)
    assert transport.audit_indexes("orders") == []


def test_a_table_without_the_column_recoverable_is_no_finding(sqlserver):
    transport = sqlserver.transport()
    transport.install("orders")
    sqlserver.sql(transport, f"ALTER TABLE [{sqlserver.schema}].[orders] DROP COLUMN [Recoverable]")
    assert codes(transport, "orders") == []


every_wrong_column = pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("rowversion", "[RowVersion] int IDENTITY(1, 1) NOT NULL"),
        ("id", "[Id] varchar(36) NOT NULL"),
        ("body", "[Body] varchar(max) NULL"),
    ],
)


@every_wrong_column
def test_a_column_of_another_type_is_found(sqlserver, column, wrong):
    (finding,) = legacy_queue(sqlserver, column, wrong).audit_indexes("orders")
    assert finding.code == "wrong_column_type"
    assert f"column {column} is" in finding.message


@every_wrong_column
def test_a_column_of_another_type_is_fixed_by_the_statement_of_its_finding(sqlserver, column, wrong):
    if sqlserver.is_babelfish and column != "body":
        pytest.skip("needs NOT NULL in ALTER COLUMN and DROP INDEX with the catalog's name; Babelfish refuses both")
    transport = legacy_queue(sqlserver, column, wrong)
    (finding,) = transport.audit_indexes("orders")
    fix(transport, finding)
    assert codes(transport, "orders") == []


def test_a_freshly_installed_heap_gives_no_finding(sqlserver):
    transport = sqlserver.transport()
    transport.install("orders", options=InstallOptions(heap=True))
    assert transport.audit_indexes() == []


def test_a_server_that_does_not_report_pages_is_audited_without_them(sqlserver, caplog):
    if not sqlserver.is_babelfish:
        pytest.skip("needs Babelfish: this server has sys.dm_db_partition_stats")
    transport = sqlserver.transport()
    transport.install("orders", options=InstallOptions(heap=True))
    with caplog.at_level(logging.DEBUG):
        assert transport.audit_indexes("orders") == []
    logged = [record for record in caplog.records if "pages of" in record.getMessage()]
    assert logged and all(record.levelno == logging.DEBUG for record in logged)


def test_empty_pages_of_a_heap_are_found_and_given_back(sqlserver):
    if sqlserver.is_babelfish:
        pytest.skip("needs heaps and sys.dm_db_partition_stats; Babelfish has neither")
    transport = sqlserver.transport()
    transport.install("orders", options=InstallOptions(heap=True))
    transport.send("orders", [new_message(b"x" * 3_000) for _ in range(6_000)])
    for _ in range(6):
        with transport.receive("orders", 1_000):
            pass
    (finding,) = transport.audit_indexes("orders")
    assert finding.code == "page_bloat"
    fix(transport, finding)
    assert codes(transport, "orders") == []
