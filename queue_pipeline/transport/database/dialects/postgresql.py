"""PostgreSQL 13 and later."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from queue_pipeline.transport.addresses import address
from queue_pipeline.transport.database.dialects.dialect import NO_BYTES, NO_UUID, Bounds, ColumnType, Dialect, Taken
from queue_pipeline.transport.database.faults import Fault
from queue_pipeline.transport.database.statements import load_statement
from queue_pipeline.transport.messages.headers import FORWARD_DESTINATION

if TYPE_CHECKING:
    from queue_pipeline.transport.addresses.queues import ClaimTables
    from queue_pipeline.transport.database.command import Command
    from queue_pipeline.transport.database.transaction import Transaction

KEEP_ALIVE = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Options of libpq: a server that does not answer, not even to probes, is lost after 60 s. A claim of the default lease
survives that: its heartbeat renews it every 100 s. The server gives up sooner (sql/postgresql/session.sql)."""
# A broken connection; a server that an operator or a crash ended, or that is not up yet; a session that it ended
# because its transaction was idle, or open, for too long.
_GONE = ("08", "57P", "25P03", "25P04")
# Disk, memory, connections; input and output.
_SHORT = ("53", "58")
# The words of psqlodbc and of libpq, under the state HY000.
_LOST = (
    *("closed the connection", "connection dead", "connection lost", "has been lost", "no connection to the server"),
    *("could not receive data from server", "could not send data to server", "SSL SYSCALL error"),
)
_REFUSED = ("authentication failed", "no password supplied", "not permitted to log in", "no pg_hba.conf entry")
FAULTS = {
    "40001": Fault.VICTIM,
    "40P01": Fault.VICTIM,
    "55P03": Fault.LOCKED,
    # A statement time-out of the user's own, or an operator's pg_cancel_backend.
    "57014": Fault.VICTIM,
    "HYT00": Fault.VICTIM,
    "42P01": Fault.MISSING_TABLE,
    "3F000": Fault.MISSING_SCHEMA,
    "3D000": Fault.MISSING_DATABASE,
    "42S02": Fault.MISSING_TABLE,
    "42P10": Fault.NO_UNIQUE_INDEX,
    "42P07": Fault.EXISTS,
    "42710": Fault.EXISTS,
    "42501": Fault.PERMISSION,
    "28000": Fault.LOGIN,
    "28P01": Fault.LOGIN,
    "42703": Fault.MISSING_COLUMN,
    # A standby, or a server that was made read-only.
    "25006": Fault.RESOURCES,
}


class PostgreSql(Dialect):
    """The dialect, whichever driver speaks it."""

    name: ClassVar[str] = "postgresql"
    column_types: ClassVar[Mapping[str, ColumnType]] = {
        "id": ColumnType("uuid", NO_UUID),
        "expires": ColumnType(
            "timestamp without time zone", "it holds UTC without a zone, and is read shifted by the zone of its reader"
        ),
        "headers": ColumnType("text", "headers are altered or refused", frozenset({"character varying"})),
        "body": ColumnType("bytea", NO_BYTES),
        # A smaller integer is the sequence's matter.
        "seq": ColumnType("bigint", "messages are received out of order", frozenset({"smallint", "integer"})),
    }
    default_schema: ClassVar[str | None] = "public"
    longest_queue_name: ClassVar[int | None] = 47
    stores_nul: ClassVar[bool] = False
    row_version: ClassVar[str] = "seq"
    name_unit: ClassVar[str] = "bytes"
    dots_end_schemas: ClassVar[bool] = True
    parse = staticmethod(address.parse_postgresql)
    format = staticmethod(address.format_postgresql)
    quote = staticmethod(address.double_quote)

    def fault(self, error: BaseException) -> Fault:
        """Classify by SQLSTATE; psycopg's errors without one are its own: the server is gone, or was never there."""
        words = str(error)
        state = getattr(error, "sqlstate", "") or ""
        if not hasattr(error, "sqlstate"):
            # ODBC: the state comes first, and a lost server may have none of its own.
            state = str(error.args[0]) if error.args else ""
            if state == "HY000":
                return Fault.CONNECTION if any(phrase in words for phrase in _LOST) else Fault.OTHER
        if state == "23505" and "_nsp_index" in words:
            # Two installers created the same name at the same moment; IF NOT EXISTS does not cover that.
            return Fault.EXISTS
        if state in FAULTS:
            return FAULTS[state]
        # A refused connection comes as 08001, or without a state, whatever the reason was.
        if not state or state.startswith("08"):
            if any(phrase in words for phrase in _REFUSED):
                return Fault.LOGIN
            if 'database "' in words and "does not exist" in words:
                return Fault.MISSING_DATABASE
        if state.startswith(_GONE):
            return Fault.CONNECTION
        if state.startswith(_SHORT):
            return Fault.RESOURCES
        if state.startswith("P0"):
            return Fault.RAISED
        # By name, so that errors can be classified where the driver is not installed.
        kinds = {kind.__name__ for kind in type(error).__mro__}
        return Fault.CONNECTION if not state and kinds & {"OperationalError", "InterfaceError"} else Fault.OTHER

    def refusal(self, cursor: Any) -> str | None:
        """The database must store every character: a failure whose text it refuses would be retried forever."""
        cursor.execute(load_statement(self.name, "session.encoding"))
        encoding = str(cursor.fetchone()[0])
        if encoding == "UTF8":
            return None
        return (
            f"the database stores text as {encoding}, which does not hold every header; create another one with: "
            "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )

    def guid(self, value: str) -> str:
        """A text is compared as a GUID."""
        return f"CAST({value} AS uuid)"

    def installer_lock(self, qualified: str) -> int:
        """The first 8 bytes, little-endian, of SHA-256 over the table's name in UTF-16."""
        return int(struct.unpack("<q", hashlib.sha256(qualified.encode("utf-16-le")).digest()[:8])[0])

    def take_claim(
        self, transaction: Transaction, take: Command, tables: ClaimTables, claim_id: str, bounds: Bounds
    ) -> Taken:
        """One statement does it all."""
        values = {**bounds._asdict(), "claim_id": claim_id, "text": FORWARD_DESTINATION}
        taken, messages, size, first, forwarded = transaction.rows(take, **values)[0]
        return Taken(int(taken), int(messages), int(size), first, int(forwarded) > 0)

    def take_in_place(
        self, transaction: Transaction, tables: ClaimTables, order: str, claim_id: str, bounds: Bounds, lease: int
    ) -> int:
        """One statement does it all."""
        command = self.statement("nginn/claim_messages.take", queue=tables.queue, claimed=tables.claimed, order=order)
        return transaction.count(command, **bounds._asdict(), claim_id=claim_id, lease=lease)
