"""PostgreSQL through psycopg 3: the same statements, without ODBC's conversions, and COPY for bulk inserts."""

from __future__ import annotations

import functools
import importlib
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from queue_pipeline.transport.ahead import ahead
from queue_pipeline.transport.database_url import DatabaseUrl
from queue_pipeline.transport.dialect import Row, chunks
from queue_pipeline.transport.dialects.postgresql import FAULTS, PostgreSql, pack
from queue_pipeline.transport.errors import DriverMissingError
from queue_pipeline.transport.faults import Fault
from queue_pipeline.transport.statements import Command, load_statement

if TYPE_CHECKING:
    from queue_pipeline.transport.addressing import QueueTable
    from queue_pipeline.transport.database import Transaction

DRIVER = "psycopg"
LOGIN_TIMEOUT_SECONDS = 15
ROWS_PER_INSERT = 10_000
_BYTES_PER_INSERT = 512 * 1024
_BYTES_PER_COPY = 1024 * 1024
_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = struct.pack("!h", -1)
_ROW = struct.Struct("!hi16si").pack
_SIZE = struct.Struct("!i").pack
# What a mark may stand in is not one: quoted names and texts hold whatever they like.
_TOKENS = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*')|(\?)|(%)""")


class PsycopgPostgreSql(PostgreSql):
    """The dialect of PostgreSQL over another driver: chosen by `?driver=psycopg`."""

    copies = True

    def connect(self, url: DatabaseUrl) -> Any:
        """Open a session in UTC at READ COMMITTED."""
        psycopg = _psycopg()
        options = {key: value for key, value in url.options.items() if key.lower() != "driver"}
        connection = psycopg.connect(
            host=url.host,
            port=url.port or 5432,
            dbname=url.database,
            user=url.user,
            password=url.password.get_secret_value() if url.password else None,
            **{"connect_timeout": LOGIN_TIMEOUT_SECONDS, **options},
        )
        connection.execute(load_statement(self.name, "session"))
        connection.commit()
        return PsycopgConnection(connection)

    def fault(self, error: BaseException) -> Fault:
        """Classify by SQLSTATE; what has none is the driver's own: a server that is gone, or never was there."""
        state, words = getattr(error, "sqlstate", None) or "", str(error)
        if state == "23505" and "_nsp_index" in words:
            return Fault.EXISTS
        if state in FAULTS:
            return FAULTS[state]
        if "authentication failed" in words:
            return Fault.LOGIN
        if 'database "' in words and "does not exist" in words:
            return Fault.MISSING_DATABASE
        operational = isinstance(error, _psycopg().OperationalError | _psycopg().InterfaceError)
        if state.startswith("08") or state in ("57P01", "57P02", "57P03") or (not state and operational):
            return Fault.CONNECTION
        return Fault.OTHER

    def insert(
        self, transaction: Transaction, command: Command, rows: Iterable[Row], common: Sequence[Any] = ()
    ) -> None:
        """Packed as through ODBC, in fewer conversions; see `copy_rows` for messages that never expire."""
        for part in chunks(rows, ROWS_PER_INSERT, _BYTES_PER_INSERT):
            transaction.execute(command, (*common, *_packed(part)))

    def copy_messages(self, transaction: Transaction, queue: QueueTable, rows: Iterable[Row]) -> None:
        """Write messages that never expire by COPY, which computes nothing and is the cheapest way in."""
        transaction.copy_in(self.statement(f"{queue.layout}/copy", queue=queue), ahead(_copied(rows)))


class PsycopgConnection:
    """A connection as the transport speaks to one: question marks for parameters, binary results."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def cursor(self) -> PsycopgCursor:
        """A cursor."""
        return PsycopgCursor(self._connection.cursor(binary=True))

    def execute(self, text: str, parameters: Sequence[Any] = ()) -> PsycopgCursor:
        """Run a statement on a cursor of its own."""
        return self.cursor().execute(text, parameters)

    def copy(self, text: str) -> Any:
        """Begin a COPY."""
        return self._connection.cursor().copy(text)

    def commit(self) -> None:
        """Commit."""
        self._connection.commit()

    def rollback(self) -> None:
        """Roll back."""
        self._connection.rollback()

    def close(self) -> None:
        """Close."""
        self._connection.close()


class PsycopgCursor:
    """A cursor that takes question marks."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, text: str, parameters: Sequence[Any] = ()) -> PsycopgCursor:
        """Run a statement."""
        self._cursor.execute(marked(text), parameters) if parameters else self._cursor.execute(text)
        return self

    def __getattr__(self, name: str) -> Any:
        """All else is psycopg's own."""
        return getattr(self._cursor, name)


@functools.lru_cache(maxsize=1_000)
def marked(text: str) -> str:
    """A statement with the marks of psycopg; what is quoted stays as it is, but for percent signs."""

    def replaced(found: re.Match[str]) -> str:
        quoted, question, _ = found.groups()
        return quoted.replace("%", "%%") if quoted else "%s" if question else "%%"

    return _TOKENS.sub(replaced, text)


def _copied(rows: Iterable[Row]) -> Iterator[bytes]:
    """Rows of id, headers and body in the binary format of COPY, in pieces of a megabyte."""
    pieces, size = [_HEAD], 0
    for row in rows:
        headers, body = row.headers.encode(), row.body
        pieces += (
            _ROW(3, 16, bytes.fromhex(row.id.replace("-", "")), len(headers)),
            headers,
            _SIZE(len(body)),
            body,
        )
        size += len(headers) + len(body)
        if size > _BYTES_PER_COPY:
            yield b"".join(pieces)
            pieces, size = [], 0
    pieces.append(_END)
    yield b"".join(pieces)


def _packed(rows: Sequence[Row]) -> tuple[Any, ...]:
    """As through ODBC, but that ASCII bytes which stand for text there are text."""
    bodies, *texts = pack(rows)
    return (bodies, *map(_text, texts))


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _psycopg() -> Any:
    try:
        return importlib.import_module("psycopg")
    except ImportError:
        raise DriverMissingError(
            "the setting asks for driver=psycopg, which is not installed; install it with: pip install "
            "'queue_pipeline[psycopg]', or leave the option out to use ODBC"
        ) from None
