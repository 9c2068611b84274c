"""The errors that programs may catch. Each names what failed and the next step."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = [
    "QueuePipelineError",
    "ConfigurationError",
    "InvalidMessageError",
    "MessageTooLargeError",
    "QueueNotFoundError",
    "AccessDeniedError",
    "DatabaseError",
    "DatabaseUnavailableError",
    "LockTimeoutError",
    "CommitUnknownError",
    "DoomedTransactionError",
    "ClaimLostError",
    "RowsDifferError",
    "RequestTimeoutError",
    "ClientClosedError",
]


class QueuePipelineError(Exception):
    """Something that a person can act on; `exit_code` is what the command line returns for it."""

    exit_code = 1


class ConfigurationError(QueuePipelineError):
    """A setting, an option or an argument is not usable as given."""

    exit_code = 2


class AddressError(ConfigurationError):
    """A queue address cannot be parsed, or its name does not fit the database."""


class InvalidMessageError(QueuePipelineError):
    """A message that must not be written: a .NET endpoint would dead-letter it."""

    exit_code = 2


class MessageTooLargeError(QueuePipelineError):
    """A message that is larger than a pipeline reads; it goes to the error queue unchanged."""


class QueueNotFoundError(QueuePipelineError):
    """A queue's table does not exist."""

    exit_code = 3

    def __init__(self, queue: str, hint: str = "", belongs_to: str | None = None) -> None:
        self.queue = queue
        step = f"create it with: queue-pipeline install {shlex.quote(belongs_to or queue)}"
        super().__init__(f"queue {queue} does not exist; {step}{f' ({hint})' if hint else ''}")


class SchemaNotFoundError(QueueNotFoundError):
    """The schema of a queue does not exist; queues are created, schemas are not."""

    def __init__(self, queue: str, words: str) -> None:
        self.queue = queue
        QueuePipelineError.__init__(self, f"queue {queue}: {words}; create the schema first, or name another")


class DatabaseUnavailableError(QueuePipelineError):
    """The database cannot be reached, went away in the middle, or keeps something locked."""

    exit_code = 4


class LockTimeoutError(DatabaseUnavailableError):
    """Another session holds a lock for longer than this one waits; nothing was done."""


class CommitUnknownError(DatabaseUnavailableError):
    """The connection broke while committing: the work is either wholly done or wholly undone."""


class DriverMissingError(DatabaseUnavailableError):
    """No driver for this database is installed."""


class AccessDeniedError(QueuePipelineError):
    """The account may not log in, or lacks a right on a table."""

    exit_code = 5
    queue: str | None = None
    """The queue whose table it may not touch, where that is known."""


class ClaimLostError(QueuePipelineError):
    """A claim is no longer this owner's: its lease ran out and another took it, or it was released."""

    exit_code = 6


class RowsDifferError(QueuePipelineError):
    """What was read of a claim is not what the claim holds: nothing was sent, and nothing was deleted."""


class RequestTimeoutError(QueuePipelineError, TimeoutError):
    """No reply to a request came in time; the request may still be answered, or may never have been taken."""

    exit_code = 7

    def __init__(self, queue: str, message_id: str, callback_queue: str, seconds: float) -> None:
        self.queue, self.message_id, self.callback_queue = queue, message_id, callback_queue
        super().__init__(
            f"no reply to request {message_id} to {queue} arrived in {callback_queue} within {seconds:g} s; look "
            f"whether a receiver works on the queue (queue-pipeline peek {shlex.quote(queue)}) and whether the request "
            "failed (queue-pipeline errors list), or allow more time"
        )


class ClientClosedError(QueuePipelineError):
    """A client was closed: requests in flight get no reply, and further ones are refused."""


class StagedLostError(QueuePipelineError):
    """Staged results are not all there, as after a crash of the database: the claim has to be processed again."""


class LayoutChangedError(QueuePipelineError):
    """A queue table's columns changed after they were last looked at; trying again works."""


class DatabaseError(QueuePipelineError):
    """Any other failure that the database reported."""


class TableNotFoundError(DatabaseError):
    """A table that is no queue does not exist: one that queues share, or the user's own."""

    exit_code = 3


class SubscriberError(QueuePipelineError):
    """A subscriber of an event cannot be sent to: its queue is missing, or its address is none."""

    exit_code = 3


class UniqueIndexMissingError(DatabaseError):
    """A merge names key columns that no unique index covers."""


class DuplicateKeyError(DatabaseError):
    """A row with the same key is there already."""


class TransientDatabaseError(DatabaseError):
    """A deadlock or serialisation victim, or a busy database: nothing was done, trying again is right."""

    exit_code = 4


class AlreadyExistsError(DatabaseError):
    """A table, index or column is there already: another process created it at the same moment."""


class DoomedTransactionError(DatabaseError):
    """A statement failed inside a transaction and was ignored; the transaction was rolled back instead."""


def check_positive(queue: object, number: int, asked: str) -> None:
    """Refuse to ask a queue for less than one of something."""
    if number < 1:
        raise ConfigurationError(f"queue {queue}: {asked}; ask for at least one")


def validation_text(error: ValidationError) -> str:
    """What pydantic found wrong, field by field, in one line."""
    found = []
    for problem in error.errors():
        field, message = ".".join(map(str, problem["loc"])), problem["msg"].removeprefix("Value error, ")
        found.append(f"{field}: {message}" if field else message)
    return "; ".join(found)
