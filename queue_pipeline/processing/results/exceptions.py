"""Describes exceptions for NServiceBus tools: name, message, and a stack trace in the form of .NET."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from queue_pipeline.processing.spark.errors import WorkerError, is_plumbing, is_spark_error, without_jvm, worker_errors
from queue_pipeline.transport.failed.error_message import LONGEST_MESSAGE, Failure
from queue_pipeline.transport.failed.stack_frames import FRAME_MARK, Frame, frame_lines, frames_of, plain_name
from queue_pipeline.transport.texts import shortened, storable

LONGEST_TEXT = 65_536
_DEEPEST = 10
_LONGEST_INNER_MESSAGE = 2_048
_MOST_DATA = 20
_LONGEST_KEY = 100
_LONGEST_VALUE = 2_048


@dataclass(frozen=True, slots=True)
class _Link:
    name: str
    message: str
    frames: tuple[Frame, ...]
    driver: tuple[Frame, ...] = ()
    """The driver's frames, if it happened in a worker."""


def describe(error: BaseException) -> Failure:
    """Describe an exception; one that a Spark worker raised is described as if it were raised here.

    An exception that raises when it is formatted is described by its name and frames.
    """
    try:
        chain = _chain(error)
    except BaseException as problem:
        frames = tuple(frames_of(error.__traceback__))
        chain = [_Link(_name(type(error)), f"(it cannot be described: {type(problem).__name__})", frames)]
    first = chain[0]
    frames = first.frames or first.driver
    return Failure(
        first.name,
        first.message,
        _text(chain),
        inner_type=chain[1].name if len(chain) > 1 else None,
        source=frames[0].package if frames else None,
        data=_data(error),
    )


def error_types(error: BaseException) -> tuple[str, ...]:
    """All names of an exception: with and without its module, and those of its bases."""
    worker = _worker_errors(error)
    if worker:
        name = worker[0].name
        known = _class_named(name)
        names = [name, name.rpartition(".")[2], *(_names(known) if known else ())]
    else:
        names = list(_names(type(error)))
    return tuple(dict.fromkeys(names))


def in_a_line(failure: Failure) -> str:
    """A failure in one line: the type without its module, and the message."""
    return f"{failure.error_type.rpartition('.')[2]}: {failure.message}"


def cause_of(error: BaseException) -> tuple[str, str]:
    """A key for errors of one cause: type and first line, without numbers and ids."""
    described = describe(error)
    first, *_ = described.message.strip().splitlines() or [""]
    return described.error_type, re.sub(r"\w*\d\w*", "0", first)


def reason_of(error: BaseException) -> tuple[str, str]:
    """A key for errors of one reason: their type and their innermost frame."""
    described = describe(error)
    places = (line for line in described.stack_trace.splitlines() if line.startswith(FRAME_MARK))
    return described.error_type, next(places, "")


def _chain(error: BaseException) -> list[_Link]:
    """An exception and its causes, outermost first; the chain may be endless or contain itself."""
    chain: list[_Link] = []
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen and len(chain) < _DEEPEST:
        seen.add(id(one))
        if one is error or not is_plumbing(one):
            chain += _links(one)
        one = _behind(one)
    return chain[:_DEEPEST]


def _behind(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None:
        return error.__cause__
    if error.__context__ is not None and not error.__suppress_context__:
        return error.__context__
    return error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None


def _links(error: BaseException) -> list[_Link]:
    worker = _worker_errors(error)
    frames = frames_of(error.__traceback__)
    if not worker:
        return [_Link(_name(type(error)), _message(error), tuple(frames))]
    # PySpark appends the worker's frames to the driver's traceback: they would appear twice.
    printed = {(frame.file, frame.line) for one in worker for frame in one.frames}
    driver = tuple(itertools.dropwhile(lambda frame: (frame.file, frame.line) in printed, frames))
    ended, *causes = [_Link(one.name, _bounded(one.message), one.frames) for one in worker]
    return [_Link(ended.name, ended.message, ended.frames, driver), *causes]


def _worker_errors(error: BaseException) -> list[WorkerError]:
    return worker_errors(_said(error)) if is_spark_error(error) else []


def _message(error: BaseException) -> str:
    said = without_jvm(_said(error)).lstrip() if is_spark_error(error) else _said(error)
    notes = getattr(error, "__notes__", ())
    lines = [said, *map(_said, notes if isinstance(notes, list | tuple) else ())]
    return _bounded("\n".join(line for line in lines if line))


def _bounded(text: str) -> str:
    return shortened(storable(text, LONGEST_MESSAGE), LONGEST_MESSAGE)


def _said(error: object) -> str:
    try:
        return str(error)
    except BaseException as problem:
        return f"(it cannot be described: {type(problem).__name__})"


def _text(chain: list[_Link]) -> str:
    """The chain as .NET prints it: causes nested, the frames of the innermost first."""
    heads = [chain[0].message, *(link.message[:_LONGEST_INNER_MESSAGE] for link in chain[1:])]
    titles = [f"{link.name}: {head}" if head else link.name for link, head in zip(chain, heads, strict=True)]
    lines = "\n ---> ".join(titles).split("\n")
    for link in reversed(chain):
        lines += frame_lines(link.frames)
        if link.driver:
            lines += ["   --- End of stack trace from previous location ---", *frame_lines(link.driver)]
        if link is not chain[0]:
            lines.append("   --- End of inner exception stack trace ---")
    sizes = itertools.accumulate(len(line) + 1 for line in lines)
    return "\n".join(line for line, size in zip(lines, sizes, strict=True) if size <= LONGEST_TEXT + 1)


def _data(error: BaseException) -> dict[str, str]:
    try:
        data = getattr(error, "data", None)
        entries = list(itertools.islice(data.items(), _MOST_DATA)) if isinstance(data, Mapping) else []
    except BaseException:
        return {}
    return {storable(_said(key), _LONGEST_KEY): storable(_said(value), _LONGEST_VALUE) for key, value in entries}


def _name(kind: type) -> str:
    return plain_name(f"{kind.__module__}.{kind.__qualname__}")


def _names(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        if base is not object:
            yield _name(base)
            yield base.__name__
            yield from _shorter_names(base)


def _shorter_names(kind: type) -> Iterator[str]:
    """Packages show what their modules define: `pyspark.errors.AnalysisException`."""
    package = str(kind.__module__).rpartition(".")[0]
    while package:
        if _defined_in(package).get(kind.__name__) is kind:
            yield f"{package}.{kind.__name__}"
        package = package.rpartition(".")[0]


def _class_named(name: str) -> type | None:
    module, _, bare = name.rpartition(".")
    kind = _defined_in(module).get(bare)
    return kind if isinstance(kind, type) and issubclass(kind, BaseException) else None


def _defined_in(module: str) -> Mapping[str, object]:
    return getattr(sys.modules.get(module), "__dict__", {})
