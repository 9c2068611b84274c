"""The databases that the transport speaks to."""

from queue_pipeline.transport.dialect import Dialect
from queue_pipeline.transport.dialects.odbc_postgresql import OdbcPostgreSql
from queue_pipeline.transport.dialects.postgresql import PostgreSql
from queue_pipeline.transport.dialects.sqlite import Sqlite
from queue_pipeline.transport.dialects.sqlserver import SqlServer

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (SqlServer(), PostgreSql(), Sqlite())}

__all__ = ["DIALECTS", "OdbcPostgreSql", "PostgreSql", "SqlServer", "Sqlite"]
