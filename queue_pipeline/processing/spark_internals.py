"""Every private part of PySpark that the project uses, with what is done where a version lacks it."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from queue_pipeline.processing.arrow import Table

_FIRST = 1_000_000
"""Beyond what a module numbers that makes its expressions once, when it is loaded."""
_classic = threading.local()
"""The session of the attempt that a thread works on, where PySpark knows but one."""
_numbers: ContextVar[Iterator[int] | None] = ContextVar("queue_pipeline_lambda_numbers", default=None)


class AttemptSessions:
    """A Spark session for each attempt, so that temporary views, settings and functions never reach another one.

    Each is a clone of the run's own session, which no transform ever sees. Safe to use from several threads.
    """

    def __init__(self, base: Callable[[], SparkSession]) -> None:
        self._base = base
        self._living: set[SparkSession] = set()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A session that is the active one of this thread, and ends with the block."""
        session = _clone(self._base())
        with self._lock:
            self._living.add(session)
        try:
            with _active(session):
                yield session
        finally:
            with self._lock:
                self._living.discard(session)
            # It ends by itself later if it cannot be ended now; an error of the block must not be hidden.
            with contextlib.suppress(Exception):
                _end(session)

    def master(self) -> str | None:
        """The master of the cluster that Spark runs on, as its configuration names it."""
        return self._base().conf.get("spark.master", None)

    def interrupt(self) -> None:
        """Stop what all sessions compute, for a run that is terminated."""
        with self._lock:
            living = list(self._living)
        for session in living:
            # The run ends either way; a server that is gone has nothing left to stop.
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


def _end(session: Any) -> None:
    """Free what the server keeps of a session. Not `stop()`, which would stop a local server or a classic context."""
    if is_remote():
        session.client.release_session()
        session.client.close()


@contextlib.contextmanager
def _active(session: Any) -> Iterator[None]:
    """Let `SparkSession.active()` in this thread be this session."""
    if not is_remote():
        _ask_thread_first()
    held = type(session)._active_session if is_remote() else _classic
    before = getattr(held, "session", None)
    held.session = session
    try:
        yield
    finally:
        held.session = before


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
    """The rows of a frame as Spark returns them. `toArrow` casts them to the schema of the frame, for which a Connect
    client asks first, and refuses a struct that is null where its fields are NOT NULL.
    """
    unknown: Any = frame
    if is_remote():
        return unknown._to_table()[0]
    return pa.Table.from_batches(unknown._collect_as_arrow(empty_list_if_zero_records=False))


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
