"""Connections of psycopg 3 that take statements as the transport writes them; loaded with the first one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Self

import psycopg
from psycopg import RawCursor
from psycopg.abc import AdaptContext, Buffer
from psycopg.conninfo import make_conninfo
from psycopg.rows import tuple_row
from psycopg.types.datetime import TimestamptzBinaryLoader, TimestamptzLoader

from queue_pipeline.transport.database_url import DatabaseUrl
from queue_pipeline.transport.dialects.marks import numbered
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.faults import driver_message

LOGIN_TIMEOUT_SECONDS = 15
ENCODING = "UTF8"
_KNOWN_OPTIONS = frozenset(option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults())
# The words of libpq for a value that it cannot use, said before it has spoken to a server.
_INVALID_VALUE = re.compile(r"invalid \S+ value|invalid port number|bad value for ")


class UtcLoader(TimestamptzLoader):
    """Instants as ODBC gives them: in UTC, without saying so."""

    def load(self, data: Buffer) -> datetime:
        """Read an instant."""
        return super().load(data).astimezone(UTC).replace(tzinfo=None)


class UtcBinaryLoader(TimestamptzBinaryLoader):
    """The same for results in binary form."""

    def load(self, data: Buffer) -> datetime:
        """Read an instant."""
        return super().load(data).astimezone(UTC).replace(tzinfo=None)


class MarkedCursor(RawCursor[Any]):
    """A cursor that takes question marks, and parameters as pyodbc does: in a sequence or one by one."""

    def __init__(self, connection: psycopg.Connection[Any], *, binary: bool = False, **options: Any) -> None:
        super().__init__(connection, **options)
        self.format = psycopg.pq.Format.BINARY if binary else psycopg.pq.Format.TEXT
        if not isinstance(connection, MarkedConnection):
            # The caller's own, which stays as it is.
            give_utc(self)

    def execute(self, query: Any, *parameters: Any, **options: Any) -> Self:
        """Run a statement; without parameters it is sent as it is, and may be several."""
        values = _sequence(parameters)
        if not values:
            return super().execute(query, **options)
        return super().execute(_checked(query, len(values)), values, **options)

    def executemany(self, query: Any, params_seq: Iterable[Sequence[Any]], *, returning: bool = False) -> None:  # type: ignore[override]
        """Run a statement for each of several sequences of parameters."""
        super().executemany(numbered(query).text, params_seq, returning=returning)


class MarkedConnection(psycopg.Connection[Any]):
    """A connection whose cursors take question marks."""

    def execute(self, query: Any, *parameters: Any, **options: Any) -> Any:
        """Run a statement on a cursor of its own."""
        return self.cursor().execute(query, *parameters, **options)


def open_psycopg(url: DatabaseUrl) -> MarkedConnection:
    """A connection that starts transactions by itself and commits only when told."""
    named = {
        "host": url.host,
        "port": url.port or 5432,
        "dbname": url.database,
        "user": url.user,
        "password": url.password.get_secret_value() if url.password else None,
        "connect_timeout": LOGIN_TIMEOUT_SECONDS,
    }
    parameters: dict[str, Any] = {**named, **connection_options(url.options), "client_encoding": ENCODING}
    try:
        place = make_conninfo("", **parameters)
        # No statement is prepared on the server, which would keep the plan that it made while the queue was empty and
        # read a full one from end to end: measured, a hundred times slower (docs/architecture.md).
        connection = MarkedConnection.connect(place, cursor_factory=MarkedCursor, prepare_threshold=None)
    except psycopg.Error as error:
        if error.sqlstate is None and _INVALID_VALUE.search(str(error)):
            words = driver_message(error, url.secrets())
            raise ConfigurationError(f"{url}: psycopg refuses an option of the setting: {words}") from None
        raise
    give_utc(connection)
    return connection


def give_utc(context: AdaptContext) -> None:
    """Let a connection or a cursor give instants as ODBC does."""
    for loader in (UtcLoader, UtcBinaryLoader):
        context.adapters.register_loader("timestamptz", loader)


def own_cursor(connection: psycopg.Connection[Any], *, binary: bool) -> MarkedCursor:
    """A cursor for our statements, on a connection of ours or of the caller's own."""
    return MarkedCursor(connection, binary=binary, row_factory=tuple_row)


def connection_options(options: dict[str, str]) -> dict[str, str]:
    """The options of a setting under libpq's names, or an error that names the one which it does not know."""
    given = {name.lower(): (name, value) for name, value in options.items()}
    for key, (name, value) in given.items():
        if key not in _KNOWN_OPTIONS:
            raise ConfigurationError(
                f"psycopg knows no option {name!r}; it takes those of libpq (sslmode, connect_timeout, …), and "
                "options of an ODBC driver need a setting that begins with postgresql+pyodbc://"
            )
        if key == "client_encoding" and value.lower().replace("-", "") != ENCODING.lower():
            raise ConfigurationError(f"the option {name!r} cannot be {value!r}: messages are UTF-8; leave it out")
    return {key: value for key, (_, value) in given.items()}


def _checked(query: str, given: int) -> str:
    text, marks = numbered(query)
    if marks != given:
        # The server would call it a breach of protocol, which is how a broken connection is told.
        raise psycopg.ProgrammingError(
            f"the SQL contains {marks} parameter markers, but {given} parameters were supplied"
        )
    return text


def _sequence(parameters: tuple[Any, ...]) -> Sequence[Any]:
    """As pyodbc has it: a single list or tuple is all of them; so is psycopg's None for none."""
    if len(parameters) == 1 and (parameters[0] is None or isinstance(parameters[0], list | tuple)):
        return parameters[0] or ()
    return parameters
