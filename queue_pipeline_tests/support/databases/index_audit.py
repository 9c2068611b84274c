"""What the tests of the index audit share: indexes that are dropped, and the fixes of findings."""

import pytest
from sqlalchemy import create_engine

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


def codes(transport, *queues):
    return [finding.code for finding in transport.audit_indexes(*queues)]


def fix(transport, finding):
    """Run a finding's statements as a database administrator would: one by one, in no transaction."""
    engine = create_engine(transport.database.engine.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in transport.database.dialect.split_script(finding.fix):
            cursor = connection.exec_driver_sql(statement).cursor
            while getattr(cursor, "nextset", bool)():
                pass
    engine.dispose()


def drop(backend, transport, code):
    if code not in DROP[backend.name]:
        pytest.skip("needs an index of its own; on SQLite RowVersion is the table itself")
    backend.sql(transport, DROP[backend.name][code].format(schema=backend.schema))
