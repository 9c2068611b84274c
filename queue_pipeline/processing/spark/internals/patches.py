"""Functions of PySpark that are replaced by others, which do the same outside of the attempts of a run."""

from __future__ import annotations

import contextlib
import itertools
import logging
import pkgutil
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from pyspark import StorageLevel
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from queue_pipeline.processing.spark.internals.parts import (
    ACTIVE,
    CLASSIC_CATALOG,
    CLASSIC_FRAME,
    CONNECT_CATALOG,
    CONNECT_FRAME,
    CONNECT_UDF,
    LAMBDAS,
    TASKS,
    UDF,
)

_FIRST = 1_000_000
"""Higher than the numbers of a module that creates its lambda functions once, when it is loaded."""
_NO_SESSION = frozenset({"SESSION_OR_CONTEXT_NOT_EXISTS", "NO_ACTIVE_OR_DEFAULT_SESSION"})
_classic = threading.local()
"""The session of the attempt that runs in a thread; PySpark itself knows one for all threads."""
_attempt = threading.local()
"""Whether a thread runs an attempt."""
_numbers: ContextVar[Iterator[int] | None] = ContextVar("queue_pipeline_lambda_numbers", default=None)
logger = logging.getLogger(__name__)


@contextlib.contextmanager
def active(session: Any) -> Iterator[None]:
    """Let `SparkSession.active()` in this thread be this session, and `stop()` do nothing."""
    held = (ACTIVE.find(type(session)) or threading.local()) if is_remote() else _classic
    if not is_remote():
        _ask_thread_first()
        _ignore_stop(type(session.sparkContext))
    _ignore_stop(type(session))
    before = getattr(held, "session", None), getattr(_attempt, "is_here", False)
    held.session, _attempt.is_here = session, True
    try:
        yield
    finally:
        held.session, _attempt.is_here = before


def _ignore_stop(kind: Any) -> None:
    """Let `stop()` do nothing in the thread of an attempt: it would end the Spark of all attempts."""
    original = kind.stop
    if getattr(original, "is_ignored", False):
        return

    def stop(self: Any) -> None:
        if getattr(_attempt, "is_here", False):
            logger.warning("a transform called stop() of Spark; it was ignored, because the session ends by itself")
            return
        original(self)

    stop.is_ignored = True  # type: ignore[attr-defined]
    kind.stop = stop


def _ask_thread_first() -> None:
    """Let a classic PySpark, which has one active session for all threads, return that of the attempt first."""
    original = SparkSession.getActiveSession
    if getattr(original, "is_of_thread", False):
        return

    def get_active_session(cls: type[SparkSession]) -> SparkSession | None:
        return getattr(_classic, "session", None) or original()

    get_active_session.is_of_thread = True  # type: ignore[attr-defined]
    SparkSession.getActiveSession = classmethod(get_active_session)  # type: ignore[method-assign, assignment]


def note_caches(caches_of: Callable[[Any], Any]) -> None:
    """Report every `persist`, `cacheTable` and `clearCache` to the caches of the session; it has none: as usual."""
    frames, catalogs = (CONNECT_FRAME, CONNECT_CATALOG) if is_remote() else (CLASSIC_FRAME, CLASSIC_CATALOG)
    frame, catalog = frames.find(), catalogs.find()
    if frame is None or catalog is None or getattr(frame.persist, "is_noted", False):
        return
    persist, cache_table, clear_cache = frame.persist, catalog.cacheTable, catalog.clearCache

    def noted_persist(self: Any, storageLevel: StorageLevel = StorageLevel.MEMORY_AND_DISK_DESER) -> Any:
        caches = caches_of(self.sparkSession)
        return persist(self, storageLevel) if caches is None else caches.persist(self, persist, storageLevel)

    def noted_cache_table(self: Any, tableName: str, storageLevel: StorageLevel | None = None) -> None:
        if (caches := caches_of(self._sparkSession)) is not None:
            caches.note_name(tableName)
        cache_table(self, tableName, storageLevel)

    def clear_own_cache(self: Any) -> None:
        caches = caches_of(self._sparkSession)
        clear_cache(self) if caches is None else caches.end()

    noted_persist.is_noted = True  # type: ignore[attr-defined]
    frame.persist, frame.cache = noted_persist, lambda self: self.persist()
    catalog.cacheTable, catalog.clearCache = noted_cache_table, clear_own_cache


@contextlib.contextmanager
def stable_names() -> Iterator[None]:
    """Number the variables of lambda functions from a fixed start, in this block and thread.

    Spark caches compiled code by its source, which contains these numbers. The client counts them from the start of the
    process, so every batch would be compiled anew. A classic session numbers them in Java: nothing changes there.
    """
    _number_lambdas()
    before = _numbers.set(itertools.count(_FIRST))
    try:
        yield
    finally:
        _numbers.reset(before)


def _number_lambdas() -> None:
    original = LAMBDAS.find()
    if original is None or getattr(original, "is_stable", False):
        return

    def fresh_var_name(name: str) -> str:
        numbers = _numbers.get()
        return str(original(name)) if numbers is None else f"{name}_{next(numbers)}"

    fresh_var_name.is_stable = True  # type: ignore[attr-defined]
    pkgutil.resolve_name(LAMBDAS.where.rpartition(".")[0]).fresh_var_name = staticmethod(fresh_var_name)


def allow_early_functions() -> None:
    """Let modules use `@udf` and `@pandas_udf` at import, before there is a session.

    PySpark decides there whether a function is classic or for Connect, and asks the session for its return type. With
    this patch the first call decides.
    """
    if (classic := UDF.find()) is None:
        return
    _read_type_later(classic)
    _call_by_mode(classic)
    if is_remote() and (remote := CONNECT_UDF.find()) is not None:
        _read_type_later(remote)


def _read_type_later(kind: Any) -> None:
    """Leave the return type of a function as the text that it is until there is a session."""
    original = kind.returnType.fget
    if getattr(original, "is_late", False):
        return

    def return_type(self: Any) -> Any:
        try:
            return original(self)
        except PySparkRuntimeError as error:
            if error.getCondition() not in _NO_SESSION:
                raise
            return self._returnType

    return_type.is_late = True  # type: ignore[attr-defined]
    kind.returnType = property(return_type)


def _call_by_mode(classic: Any) -> None:
    """Have a function that was made without a session work with a session of Connect as well."""
    original = classic.__call__
    if getattr(original, "is_by_mode", False):
        return

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_remote() or (remote := CONNECT_UDF.find()) is None:
            return original(self, *args, **kwargs)
        if getattr(self, "_remote", None) is None:
            self._remote = remote(self.func, self._returnType, self._name, self.evalType, self.deterministic)
        return self._remote(*args, **kwargs)

    call.is_by_mode = True  # type: ignore[attr-defined]
    classic.__call__ = call


def wrap_tasks(begin: Callable[[Any], None], end: Callable[[], None]) -> None:
    """Have a worker call these before and after each task; `begin` gets the stream that the task comes from."""
    if (main := TASKS.find()) is None:
        return

    def wrapped(infile: Any, outfile: Any) -> None:
        begin(infile)
        try:
            main(infile, outfile)
        finally:
            end()

    pkgutil.resolve_name("pyspark.worker").main = wrapped
