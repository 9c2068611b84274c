"""Every private part of PySpark that the project uses, with what is done where a version lacks it."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from queue_pipeline.processing.arrow import Table, usual_types
from queue_pipeline.processing.errors import BatchTimeoutError, SparkUnavailableError
from queue_pipeline.processing.spark.attempt_caches import AttemptCaches

logger = logging.getLogger(__name__)

_FIRST = 1_000_000
"""Beyond what a module numbers that makes its expressions once, when it is loaded."""
_classic = threading.local()
"""The session of the attempt that a thread works on, where PySpark knows but one."""
_attempt = threading.local()
"""Whether a thread works on an attempt."""
_numbers: ContextVar[Iterator[int] | None] = ContextVar("queue_pipeline_lambda_numbers", default=None)
_NO_SESSION = frozenset({"SESSION_OR_CONTEXT_NOT_EXISTS", "NO_ACTIVE_OR_DEFAULT_SESSION"})


class AttemptSessions:
    """A Spark session for each attempt, so that temporary views, settings and functions never reach another one.

    Each is a clone of the run's own session, which no transform ever sees. Safe to use from several threads.
    """

    def __init__(self, base: Callable[[], SparkSession], seconds: float = threading.TIMEOUT_MAX) -> None:
        """Each session is interrupted after `seconds`."""
        self._base = base
        self._seconds = seconds
        self._living: set[SparkSession] = set()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A session that is the active one of this thread, and ends with the block."""
        base = self._base()
        try:
            session = _clone(base)
        except Exception as error:
            raise SparkUnavailableError(
                "Spark went away before it was given anything to compute; the next run finds or starts another"
            ) from error
        caches = AttemptCaches(session)
        with self._lock:
            self._living.add(session)
        over = threading.Event()
        timer = threading.Timer(self._seconds, _time_out, (session, over))
        timer.daemon = True
        timer.start()
        try:
            with _active(session):
                yield session
        except BaseException as error:
            if over.is_set():
                raise BatchTimeoutError(
                    f"Spark did not end in batch_seconds ({self._seconds:g} s) and was interrupted; give it longer, or "
                    "see what the transform waits for"
                ) from error
            raise
        finally:
            timer.cancel()
            with self._lock:
                self._living.discard(session)
            # It ends by itself later if it cannot be ended now; an error of the block must not be hidden.
            with contextlib.suppress(Exception):
                caches.end()
            with contextlib.suppress(Exception):
                end_session(session)

    def master(self) -> str | None:
        """The master of the cluster that Spark runs on, as its configuration names it."""
        return self._base().conf.get("spark.master", None)

    def interrupt(self) -> None:
        """Stop what all sessions compute, for a run that is terminated."""
        with self._lock:
            living = list(self._living)
        for session in living:
            _interrupt(session)


def _time_out(session: SparkSession, over: threading.Event) -> None:
    over.set()
    _interrupt(session)


def _interrupt(session: SparkSession) -> None:
    """Stop what a session computes; a server that is gone has nothing left to stop."""
    with contextlib.suppress(Exception):
        session.interruptAll()


def _clone(base: Any) -> SparkSession:
    """A session with the settings of another one: `newSession` of a Connect client would start without them."""
    if not is_remote():
        copied: SparkSession = type(base)(base.sparkContext, base._jsparkSession.cloneSession())
        return copied
    clone: Any = base.cloneSession()
    clone.client.set_retry_policies(base.client.get_retry_policies())
    return clone  # type: ignore[no-any-return]


def end_session(session: Any) -> None:
    """Free what the server keeps of a session. Not `stop()`, which would stop a local server or a classic context."""
    if is_remote():
        session.client.release_session()
        session.client.close()


def connect_to(address: str, config: Mapping[str, str]) -> SparkSession:
    """A session of a Connect server that is neither the active nor the default one of this process."""
    # What the builder of a session sets: `is_remote` asks for it.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    session: Any = importlib.import_module("pyspark.sql.connect.session").SparkSession(address)
    settings = {name: value for name, value in config.items() if name.startswith("spark.sql.")}
    # Those that hold for a whole server were given to it when it started.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s)Failed to set .*CANNOT_MODIFY_")
        session.conf._set_all(configs=settings, silent=True)
    return session  # type: ignore[no-any-return]


def endpoint(session: Any) -> tuple[str, int]:
    """Host and port of the Connect server of a session."""
    host, _, port = str(session.client._builder.endpoint).rpartition(":")
    return host, int(port)


def driver_exit_code() -> int | None:
    """How the JVM ended that is a classic driver inside of this process; None if it runs, or if there is none."""
    process = getattr(getattr(SparkContext, "_gateway", None), "proc", None)
    return None if process is None else process.poll()


@contextlib.contextmanager
def _active(session: Any) -> Iterator[None]:
    """Let `SparkSession.active()` in this thread be this session, and `stop()` do nothing."""
    if not is_remote():
        _ask_thread_first()
        _ignore_stop(type(session.sparkContext))
    _ignore_stop(type(session))
    held = type(session)._active_session if is_remote() else _classic
    before = getattr(held, "session", None), getattr(_attempt, "is_here", False)
    held.session, _attempt.is_here = session, True
    try:
        yield
    finally:
        held.session, _attempt.is_here = before


def _ignore_stop(kind: Any) -> None:
    """Let `stop()` of a session or a context do nothing in the thread of an attempt: other attempts work with the same
    Spark, and of a classic one it would end the driver of all.
    """
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
    """A classic PySpark has one active session for all threads; let it ask for that of the attempt first."""
    original = SparkSession.getActiveSession
    if getattr(original, "is_of_thread", False):
        return

    def get_active_session(cls: type[SparkSession]) -> SparkSession | None:
        return getattr(_classic, "session", None) or original()

    get_active_session.is_of_thread = True  # type: ignore[attr-defined]
    SparkSession.getActiveSession = classmethod(get_active_session)  # type: ignore[method-assign, assignment]


def collected(frame: DataFrame) -> Table:
    """The rows of a frame as Spark returns them, with the usual types.

    `toArrow` casts them to the schema of the frame, for which a Connect client asks first, and refuses a struct that is
    null where its fields are NOT NULL.
    """
    unknown: Any = frame
    if is_remote():
        return usual_types(unknown._to_table()[0])
    return usual_types(pa.Table.from_batches(unknown._collect_as_arrow(empty_list_if_zero_records=False)))


@contextlib.contextmanager
def stable_names() -> Iterator[None]:
    """Number the variables of lambda functions from the same number on, in this block and thread.

    Spark keeps what it compiled by the source that it generated, and the numbers of `F.transform` and the like stand in
    that source. The client counts them from the start of the process, so that every batch would be compiled anew.
    A classic session numbers them in Java, out of reach; nothing changes there.
    """
    _install()
    before = _numbers.set(itertools.count(_FIRST))
    try:
        yield
    finally:
        _numbers.reset(before)


def _install() -> None:
    """Have the client of Spark Connect ask here first; where it has no such function, nothing is done."""
    try:
        variable: Any = importlib.import_module("pyspark.sql.connect.expressions").UnresolvedNamedLambdaVariable
        original = variable.fresh_var_name
    except (ImportError, AttributeError):
        return
    if getattr(original, "is_stable", False):
        return

    def fresh_var_name(name: str) -> str:
        numbers = _numbers.get()
        return str(original(name)) if numbers is None else f"{name}_{next(numbers)}"

    fresh_var_name.is_stable = True  # type: ignore[attr-defined]
    variable.fresh_var_name = staticmethod(fresh_var_name)


def allow_early_functions() -> None:
    """Let modules make functions with `@udf` and `@pandas_udf` when they are loaded, before there is a session.

    PySpark decides at that moment whether a function is for a classic session or for Connect, and asks the session what
    a return type such as "string" means. Here the first call decides, when there is a session.
    """
    classic: Any = importlib.import_module("pyspark.sql.udf").UserDefinedFunction
    _read_type_later(classic)
    _call_by_mode(classic)
    if is_remote():
        _read_type_later(importlib.import_module("pyspark.sql.connect.udf").UserDefinedFunction)


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
        if not is_remote():
            return original(self, *args, **kwargs)
        if getattr(self, "_remote", None) is None:
            remote: Any = importlib.import_module("pyspark.sql.connect.udf").UserDefinedFunction
            self._remote = remote(self.func, self._returnType, self._name, self.evalType, self.deterministic)
        return self._remote(*args, **kwargs)

    call.is_by_mode = True  # type: ignore[attr-defined]
    classic.__call__ = call
