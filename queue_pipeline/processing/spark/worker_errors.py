"""Errors of this project's own that come back from Spark's workers as text, raised again as what they are."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from queue_pipeline.processing import errors as processing_errors
from queue_pipeline.processing.spark.errors import is_spark_error, worker_errors
from queue_pipeline.transport import database
from queue_pipeline.transport import errors as transport_errors
from queue_pipeline.transport.errors import QueueNotFoundError, QueuePipelineError

_KNOWN = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for module in (transport_errors, processing_errors, database)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, QueuePipelineError)
}
_QUEUE = re.compile(r"queue (?P<queue>.+?) does not exist;")


@contextlib.contextmanager
def own_errors() -> Iterator[None]:
    """Raise what a worker raised, where that is an error of ours: a lost claim, a database that is away."""
    try:
        yield
    except Exception as error:
        own = own_error(error)
        if own is None:
            raise
        raise own from error


def own_error(error: BaseException) -> QueuePipelineError | None:
    """The error of ours that a message of Spark contains, if it ended the work."""
    if not is_spark_error(error):
        return None
    for found in worker_errors(str(error))[:1]:
        kind = _KNOWN.get(found.name)
        if kind is not None:
            return _made(kind, found.message)
    return None


def _made(kind: type[QueuePipelineError], message: str) -> QueuePipelineError:
    """An error with this text; the constructors of some errors take other arguments."""
    made = kind.__new__(kind)
    QueuePipelineError.__init__(made, message)
    if isinstance(made, QueueNotFoundError):
        named = _QUEUE.match(message)
        made.queue = named["queue"] if named else ""
    return made
