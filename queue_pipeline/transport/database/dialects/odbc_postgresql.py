"""SQLAlchemy's dialect of `postgresql+pyodbc://`: PostgreSQL over the driver manager that SQL Server needs."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import URL
from sqlalchemy.connectors.pyodbc import PyODBCConnector
from sqlalchemy.dialects.postgresql.base import PGDialect

from queue_pipeline.transport.database.dialects.postgresql import KEEP_ALIVE

_OPTIONS = {
    "UseServerSidePrepare": "1",
    "ByteaAsLongVarBinary": "1",
    "MaxVarcharSize": "0",
    # The whole result of a statement at once: a declared cursor would keep the statement open across the commit.
    "UseDeclareFetch": "0",
    # A line feed in a text stays a line feed.
    "LFConversion": "0",
    # No savepoint around each statement: an error dooms the transaction, which is what the transport relies on.
    "Protocol": "7.4-0",
    "pqopt": " ".join(f"{name}={value}" for name, value in KEEP_ALIVE.items()),
}
_BRACED = re.compile(r"\{(?:[^}]|\}\})*\}")
_NAME = re.compile(r"(?:^|;)\s*(\w+)\s*=")


class OdbcPostgreSqlDialect(PyODBCConnector, PGDialect):
    """psqlodbc with the options that the statements of the transport rely on."""

    supports_statement_cache = True

    def create_connect_args(self, url: URL) -> Any:
        """The ODBC string, with the port as this driver takes it; options of the setting win over ours."""
        whole = str(url.query.get("odbc_connect", ""))
        names = _NAME.findall(_BRACED.sub("", whole)) if whole else url.query
        given = {name.lower() for name in names}
        options = {name: value for name, value in _OPTIONS.items() if name.lower() not in given}
        if whole:
            lacking = "".join(f";{name}={value}" for name, value in options.items())
            return super().create_connect_args(url.update_query_dict({"odbc_connect": whole.rstrip("; ") + lacking}))
        (text,), more = super().create_connect_args(
            url.set(password="").update_query_dict({"port": str(url.port or 5432), **options})
        )
        if url.password:
            # Without braces the driver would read plus and percent signs as in a URL.
            text += f";PWD={{{str(url.password).replace('}', '}}')}}}"
        return (text,), more

    def do_commit(self, dbapi_connection: Any) -> None:
        """Commit by a statement: after a lost session, psqlodbc's own commit does nothing and succeeds."""
        cursor = dbapi_connection.cursor()
        cursor.execute("COMMIT")
        cursor.close()
        dbapi_connection.commit()
