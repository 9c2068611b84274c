"""PostgreSQL through psqlodbc: the same statements over the driver manager that SQL Server needs."""

from __future__ import annotations

from typing import Any, ClassVar

from queue_pipeline.transport.database_url import DatabaseUrl
from queue_pipeline.transport.dialect import Dialect
from queue_pipeline.transport.dialects.odbc import connection_string, find_driver, open_odbc
from queue_pipeline.transport.dialects.postgresql import PostgreSql, known_fault
from queue_pipeline.transport.faults import Fault

DRIVERS = ("PostgreSQL Unicode", "PostgreSQL Unicode(x64)", "PostgreSQL")
DRIVER_OPTIONS = {
    "UseServerSidePrepare": "1",
    "ByteaAsLongVarBinary": "1",
    "MaxVarcharSize": "0",
    # The whole result of a statement at once: a declared cursor would keep the statement open across the commit.
    "UseDeclareFetch": "0",
    # A line feed in a text stays a line feed.
    "LFConversion": "0",
    # No savepoint around each statement: an error dooms the transaction, which is what the transport relies on.
    "Protocol": "7.4-0",
}
_LOST = ("closed the connection", "connection dead", "connection lost", "no connection to the server")


class OdbcPostgreSql(PostgreSql):
    """The dialect of `postgresql+pyodbc://`, and of an `odbc:` setting whose server is PostgreSQL."""

    copies: ClassVar[bool] = False

    def _open(self, url: DatabaseUrl) -> Any:
        pairs = {}
        if url.odbc is None:
            driver = find_driver(
                url.driver,
                DRIVERS,
                database="PostgreSQL",
                install="install Debian's odbc-postgresql, or use psycopg by a setting that begins with postgresql://",
            )
            pairs = {
                "DRIVER": driver,
                "SERVER": url.host or "",
                "PORT": str(url.port or 5432),
                "DATABASE": url.database or "",
                "UID": url.user or "",
                "PWD": url.password.get_secret_value() if url.password else "",
            }
        return open_odbc(connection_string(url, pairs, DRIVER_OPTIONS))

    def cursor(self, connection: Any, *, own: bool) -> Any:
        """A plain cursor."""
        return Dialect.cursor(self, connection, own=own)

    def answers(self, connection: Any) -> bool:
        """A plain statement."""
        return Dialect.answers(self, connection)

    def fault(self, error: BaseException) -> Fault:
        """Classify by SQLSTATE; the driver reports a lost server under several."""
        state = str(error.args[0]) if error.args else ""
        words = str(error)
        known = known_fault(state, words)
        if known is not None:
            return known
        # The driver's own words for a lost server carry no state of their own (HY000).
        lost = state == "HY000" and any(phrase in words for phrase in _LOST)
        return Fault.CONNECTION if lost else Fault.OTHER
