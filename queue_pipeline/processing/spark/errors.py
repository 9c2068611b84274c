"""Spark errors without the JVM's part, and the exceptions of Python workers.

A worker's exception reaches the driver as the text of its traceback, inside the message of another error.
"""

from __future__ import annotations

import builtins
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from queue_pipeline import errors as public_errors
from queue_pipeline.errors import QueueNotFoundError, QueuePipelineError
from queue_pipeline.processing import errors as processing_errors
from queue_pipeline.transport.failed.stack_frames import Frame, frame_at, plain_name

_TRACEBACK = "Traceback (most recent call last):\n"
_CHAINED = re.compile(
    r"\n\n(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n"
)
_FRAME = re.compile(r' +File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)')
_ERROR = re.compile(r"(?P<name>[^\s:]+)(?:: (?P<message>.*))?\Z", re.DOTALL)
_GROUP = re.compile(r"^ +[|+] ", re.MULTILINE)
_JVM = re.compile(r"\n\s*\n(?:JVM|Driver) stacktrace:|\n\tat [\w.$]+")
_STATE = re.compile(r"\n SQLSTATE: \w{5}\s*\Z")
_MEMORY = ("java.lang.OutOfMemoryError", "SparkOutOfMemoryError", "UNABLE_TO_ACQUIRE_MEMORY")
_EXECUTOR = re.compile(r"ExecutorLostFailure \([^\n]*?\)?\s*Reason: ([^\n]*)")
_WITHOUT_TRACEBACK = re.compile(r"thrown from the Python worker:\s+(?=[\w.<>]+(?:: |\s*\n|\s*\Z))")

_OWN_ERRORS = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for module in (public_errors, processing_errors)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, QueuePipelineError)
}
_QUEUE = re.compile(r"queue (?P<queue>.+?) does not exist;")


@dataclass(frozen=True, slots=True)
class WorkerError:
    """An exception of a Spark worker, with its frames, innermost first."""

    name: str
    message: str
    frames: tuple[Frame, ...]


def is_spark_error(error: BaseException) -> bool:
    """Whether Spark's driver side raised it. Does not import Spark, which takes a second."""
    return any(_package(kind) in ("pyspark", "py4j") for kind in type(error).__mro__)


def is_plumbing(error: BaseException) -> bool:
    """Whether it is the transport error behind an error of Spark's client."""
    return _package(type(error)) in ("grpc", "py4j")


def involves_spark(error: BaseException) -> bool:
    """Whether Spark raised it, or an error in its chain: a transform may have wrapped it."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        if is_spark_error(one) or is_plumbing(one):
            return True
        seen.add(id(one))
        one = one.__cause__ or one.__context__
    return False


def shared_loss(error: BaseException) -> str | None:
    """What Spark lost that other batches use too, in words: memory of the JVM, or an executor; None if nothing."""
    if not is_spark_error(error):
        return None
    text = str(error)
    if any(sign in text for sign in _MEMORY):
        return "the memory of Spark's JVM ran out (java.lang.OutOfMemoryError)"
    if (found := _EXECUTOR.search(text)) is not None:
        return f"an executor was lost: {found[1].strip()}"
    return None


def without_jvm(text: str) -> str:
    """What Spark says, up to the JVM's stack trace."""
    found = _JVM.search(text)
    return (text[: found.start()] if found else text).rstrip()


def worker_errors(text: str) -> list[WorkerError]:
    """The exceptions of a worker that a message of Spark holds: the one that ended it first, then its causes."""
    _, found, printed = text.partition(_TRACEBACK)
    if not found:
        without = _WITHOUT_TRACEBACK.search(text)
        printed = text[without.end() :] if without else ""
    printed = _STATE.sub("", without_jvm(_GROUP.sub("", printed) if "Exception Group" in text else printed))
    errors = [_read(part.removeprefix(_TRACEBACK)) for part in _CHAINED.split(printed)]
    # A message that was cut ends before it names its exception.
    return [error for error in reversed(errors) if error is not None] if errors[-1] is not None else []


def _read(printed: str) -> WorkerError | None:
    lines = printed.split("\n")
    frames: list[Frame] = []
    while lines and (lines[0].startswith(" ") or not lines[0]):
        if found := _FRAME.fullmatch(lines.pop(0)):
            frames.append(frame_at(found["file"], int(found["line"]), found["function"]))
    found = _ERROR.match("\n".join(lines))
    if found is None:
        return None
    return WorkerError(_qualified(found["name"]), (found["message"] or "").rstrip(), tuple(reversed(frames)))


def _qualified(name: str) -> str:
    """Tracebacks leave out the module of Python's own exceptions."""
    kind = getattr(builtins, name, None)
    return f"builtins.{name}" if isinstance(kind, type) and issubclass(kind, BaseException) else plain_name(name)


def _package(kind: type) -> str:
    return str(kind.__module__).partition(".")[0]


@contextlib.contextmanager
def own_errors() -> Iterator[None]:
    """Raise the error of a worker again, if it is one of this project: a lost claim, an unavailable database."""
    try:
        yield
    except Exception as error:
        for found in worker_errors(str(error))[:1] if is_spark_error(error) else ():
            if (kind := _OWN_ERRORS.get(found.name)) is not None:
                raise _made(kind, found.message) from error
        raise


def _made(kind: type[QueuePipelineError], message: str) -> QueuePipelineError:
    """An error with this text; the constructors of some errors take other arguments."""
    made = kind.__new__(kind)
    QueuePipelineError.__init__(made, message)
    if isinstance(made, QueueNotFoundError):
        named = _QUEUE.match(message)
        made.queue = named["queue"] if named else ""
    return made
