"""PostgreSQL through psycopg 3: the same statements without ODBC's conversions, and COPY for messages in bulk."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from queue_pipeline.transport.ahead import ahead
from queue_pipeline.transport.database_url import DatabaseUrl
from queue_pipeline.transport.dialect import Copier, Row, chunks
from queue_pipeline.transport.dialects.copy_format import copied, copied_columns, staged_values
from queue_pipeline.transport.dialects.postgresql import (
    BYTES_PER_INSERT,
    ROWS_PER_INSERT,
    PostgreSql,
    known_fault,
    pack,
)
from queue_pipeline.transport.errors import DriverMissingError
from queue_pipeline.transport.faults import Fault
from queue_pipeline.transport.messages import new_row_id_bytes
from queue_pipeline.transport.statements import Command, load_statement

if TYPE_CHECKING:
    import pyarrow as pa

    from queue_pipeline.transport.addressing import ClaimTables, QueueTable
    from queue_pipeline.transport.arrow_column import ArrowColumn
    from queue_pipeline.transport.database import Transaction

DRIVER = "psycopg"


class PsycopgPostgreSql(PostgreSql, Copier):
    """The dialect of PostgreSQL over another driver: chosen by `?driver=psycopg`."""

    def connect(self, url: DatabaseUrl) -> Any:
        """Open a session in UTC at READ COMMITTED."""
        connection = _driver().open_psycopg(url)
        connection.execute(load_statement(self.name, "session"))
        connection.commit()
        return connection

    def cursor(self, connection: Any, *, own: bool) -> Any:
        """Our statements get their results in binary form: bodies are not written out in hexadecimal digits.

        Statements of the caller get text, in which every type comes readable, and may be several in one.
        """
        return _driver().own_cursor(connection, binary=own)

    def answers(self, connection: Any) -> bool:
        """An empty statement outside a transaction: one round trip instead of three."""
        connection.autocommit = True
        try:
            connection.execute("")
        finally:
            connection.autocommit = False
        return True

    def fault(self, error: BaseException) -> Fault:
        """Classify by SQLSTATE; what has none is the driver's own: a server that is gone, or never was there."""
        state = getattr(error, "sqlstate", None) or ""
        known = known_fault(state, str(error))
        if known is not None:
            return known
        # By name, so that an error can be told apart where the driver is not installed.
        kinds = {kind.__name__ for kind in type(error).__mro__}
        return Fault.CONNECTION if not state and kinds & {"OperationalError", "InterfaceError"} else Fault.OTHER

    def insert(
        self, transaction: Transaction, command: Command, rows: Iterable[Row], common: Sequence[Any] = ()
    ) -> None:
        """Packed as through ODBC; see `copy_messages` for messages that never expire."""
        packed = ((*common, *_packed(part)) for part in chunks(rows, ROWS_PER_INSERT, BYTES_PER_INSERT))
        for parameters in ahead(packed):
            transaction.execute(command, parameters)

    def read_claimed(
        self, transaction: Transaction, tables: ClaimTables, values: tuple[str, int, int], *, body: bool
    ) -> pa.RecordBatch:
        """In the binary form of COPY: what ODBC is slow at costs little here, and packing costs the server more."""
        from queue_pipeline.transport.claimed_columns import from_copied

        command = self.statement("nservicebus/claim_read_copied", queue=tables.queue, claimed=tables.claimed)
        return from_copied(*transaction.copy_out(command, (int(body), *values))).messages

    def copy_messages(self, transaction: Transaction, queue: QueueTable, rows: Iterable[Row]) -> None:
        """Write messages that never expire by COPY, which computes nothing and is the cheapest way in."""
        transaction.copy_in(self.statement(f"{queue.layout}/copy", queue=queue), ahead(copied(rows)))

    def copy_columns(
        self, transaction: Transaction, queue: QueueTable, headers: ArrowColumn[str], bodies: ArrowColumn[bytes]
    ) -> None:
        """As `copy_messages`."""
        pieces = copied_columns(new_row_id_bytes(len(headers)), headers.array, bodies.array)
        transaction.copy_in(self.statement(f"{queue.layout}/copy", queue=queue), ahead(pieces))

    def copy_staged(
        self,
        transaction: Transaction,
        command: Command,
        common: tuple[str, str, int],
        headers: ArrowColumn[str],
        bodies: ArrowColumn[bytes],
    ) -> None:
        """As `copy_messages`."""
        ids, values = new_row_id_bytes(len(headers)), staged_values(*common)
        transaction.copy_in(command, ahead(copied_columns(ids, headers.array, bodies.array, *values)))


def _packed(rows: Sequence[Row]) -> tuple[Any, ...]:
    """As through ODBC, but that ASCII bytes which stand for text there are text."""
    bodies, *texts = pack(rows)
    return (bodies, *(text.decode() if isinstance(text, bytes) else text for text in texts))


def _driver() -> Any:
    try:
        return importlib.import_module("queue_pipeline.transport.dialects.psycopg_connection")
    except ImportError as error:
        raise DriverMissingError(
            f"the setting asks for driver=psycopg, and psycopg 3.2 or later cannot be loaded ({error}); install it "
            "with: pip install 'queue_pipeline[psycopg]', or leave the option out to use ODBC"
        ) from None
