"""What went wrong, in the terms of the transport: one place turns driver errors into ours."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable

from queue_pipeline.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    DatabaseError,
    DatabaseUnavailableError,
    DuplicateKeyError,
    LayoutChangedError,
    LockTimeoutError,
    QueueNotFoundError,
    QueuePipelineError,
    SchemaNotFoundError,
    TableNotFoundError,
    TransientDatabaseError,
    UniqueIndexMissingError,
)


class Fault(enum.Enum):
    """The kinds of failure that are handled differently."""

    VICTIM = "deadlock or serialisation victim, or a busy database: try again without alarm"
    LOCKED = "another session holds a lock for longer than this one waits"
    CONNECTION = "the connection or the server is gone"
    RESOURCES = "the server lacks disk, memory or connections, is read-only for now, or its files are damaged"
    MISSING_TABLE = "a table does not exist"
    MISSING_COLUMN = "a column does not exist"
    MISSING_SCHEMA = "a schema does not exist"
    MISSING_DATABASE = "the server has no such database"
    LAYOUT = "a column appeared or disappeared since the table was looked at"
    LOGIN = "user or password refused"
    PERMISSION = "a right is missing"
    EXISTS = "the object is already there"
    NO_UNIQUE_INDEX = "a merge names columns that no unique index covers"
    DUPLICATE = "a row with the same key is there already"
    RAISED = "a trigger or function of the user's own refused it"
    OTHER = "anything else"


_STATE = re.compile(r"[0-9A-Z]{5}\Z")
_PREFIX = re.compile(r"^(?:\[[^\]]*\]\s*)+")
_DRIVER_REMARK = re.compile(r"; Error while \w+ (?:the query|parameters)$")
_SUFFIX = re.compile(r"\s*\((-?\d+)\)\s*\(SQL\w+\)\s*$")


def driver_message(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """The driver's own words in one line, without its bookkeeping and without any secret."""
    text = _words(error)
    # Before anything else: what is cut or folded later would no longer be recognised.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    text = " ".join(_SUFFIX.sub("", text).split())
    text = _DRIVER_REMARK.sub("", _PREFIX.sub("", text)).removeprefix("ERROR: ").rstrip(" ;.")
    return text


def native_number(error: BaseException) -> int | None:
    """The server's error number, which ODBC drivers put at the end of the text."""
    match = re.search(r"\((-?\d+)\)\s*\(SQL\w+\)", _words(error))
    return int(match.group(1)) if match else None


def _words(error: BaseException) -> str:
    """The text of a driver's error: pyodbc puts the SQLSTATE first, except in errors of its own."""
    diag = getattr(error, "diag", None)
    if diag is not None and diag.message_primary:
        # psycopg's, whose text also draws the statement.
        return f"{diag.message_primary} DETAIL: {diag.message_detail}" if diag.message_detail else diag.message_primary
    if not error.args:
        return str(error)
    texts = [str(argument) for argument in error.args]
    return next((text for text in reversed(texts) if not _STATE.match(text)), texts[-1])


def translate(
    fault: Fault,
    error: BaseException,
    *,
    queue: str | None,
    where: str,
    table: str | None = None,
    secrets: Iterable[str] = (),
) -> QueuePipelineError:
    """Our error for a driver's error, naming the queue or the user's own table, the database and the next step."""
    words = driver_message(error, secrets)
    subject = f"queue {queue}: " if queue else f"table {table}: " if table else ""
    match fault:
        case Fault.MISSING_TABLE | Fault.MISSING_SCHEMA if table is not None:
            return TableNotFoundError(f"table {table} does not exist; create it with your own migration ({words})")
        case Fault.PERMISSION if table is not None:
            return AccessDeniedError(f"{subject}{words}; let this account read, insert and update rows of it")
        case Fault.MISSING_TABLE if queue is not None:
            return QueueNotFoundError(queue, words)
        case Fault.MISSING_TABLE:
            return TableNotFoundError(f"{words}; create the tables with: queue-pipeline install QUEUE")
        case Fault.MISSING_SCHEMA if queue is not None:
            return SchemaNotFoundError(queue, words)
        case Fault.MISSING_DATABASE:
            return DatabaseUnavailableError(f"{where}: {words}; check the name of the database in the setting")
        case Fault.EXISTS:
            return AlreadyExistsError(f"{subject}{words}")
        case Fault.VICTIM:
            return TransientDatabaseError(f"{subject}the database asked for another try: {words}")
        case Fault.LOCKED:
            return LockTimeoutError(
                f"{subject}{where}: another session holds a lock for too long: {words}; find that session and end it, "
                "or try again later"
            )
        case Fault.CONNECTION:
            return DatabaseUnavailableError(f"{subject}{where} cannot be reached: {words}; check that it runs")
        case Fault.RESOURCES:
            return DatabaseUnavailableError(f"{subject}{where} cannot go on: {words}; check the server")
        case Fault.MISSING_COLUMN if table is not None:
            return DatabaseError(f"{subject}{words}; name only columns that the table has")
        case Fault.MISSING_COLUMN:
            return DatabaseError(f"{subject}{words}; this is no queue table, or not of this layout")
        case Fault.LOGIN:
            return AccessDeniedError(f"{where} refused the login: {words}; check user and password of the setting")
        case Fault.PERMISSION:
            denied = AccessDeniedError(
                f"{subject}{words}; grant the rights with: queue-pipeline script {queue or 'QUEUE'} --grant-to ACCOUNT"
            )
            denied.queue = queue
            return denied
        case Fault.LAYOUT:
            return LayoutChangedError(f"{subject}its columns changed since the last look at them: {words}; try again")
        case Fault.NO_UNIQUE_INDEX:
            return UniqueIndexMissingError(f"{subject}{words}")
        case Fault.DUPLICATE:
            return DuplicateKeyError(f"{subject}{words}")
        case _:
            return DatabaseError(f"{subject}{words}")
