"""Every private part of PySpark that the project uses, with what is done where a version lacks it."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from queue_pipeline.processing.arrow import Table

_FIRST = 1_000_000
"""Beyond what a module numbers that makes its expressions once, when it is loaded."""
_RELATION = 1
"""A query, among the kinds of a compressed plan."""
_numbers: ContextVar[Iterator[int] | None] = ContextVar("queue_pipeline_lambda_numbers", default=None)


class AttemptSessions:
    """A Spark session for each attempt, so that temporary views, settings and functions never reach another one.

    Each is a clone of the run's own session, which no transform ever sees. A session that the transform left as it was
    serves the next attempt of its slot: Spark compiles a query once per session, which costs the worked example 15
    microseconds a message. Safe to use from several threads.
    """

    def __init__(self, base: Callable[[], SparkSession]) -> None:
        self._base = base
        self._idle: list[_Attempt] = []
        self._busy: set[_Attempt] = set()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A session of this thread's own that no other code has changed."""
        base = self._base()
        with self._lock:
            attempt = self._idle.pop() if self._idle else None
        attempt = attempt or _Attempt(base)
        with self._lock:
            self._busy.add(attempt)
        is_unchanged = False
        try:
            with _active(attempt.session):
                yield attempt.session
            is_unchanged = not attempt.is_changed
        finally:
            with self._lock:
                self._busy.discard(attempt)
                if is_unchanged:
                    self._idle.append(attempt)
            if not is_unchanged:
                attempt.end()

    def interrupt(self) -> None:
        """Stop what all sessions compute, for a run that is terminated."""
        with self._lock:
            busy = list(self._busy)
        for attempt in busy:
            # The run ends either way; a server that is gone has nothing left to stop.
            with contextlib.suppress(Exception):
                attempt.session.interruptAll()

    def close(self) -> None:
        """End the sessions that wait for a next attempt."""
        with self._lock:
            idle, self._idle = self._idle, []
        for attempt in idle:
            attempt.end()


class _Attempt:
    """A session, and whether a transform may have changed it."""

    def __init__(self, base: Any) -> None:
        self._stub: _WatchedStub | None = None
        if not is_remote():
            # A classic clone costs next to nothing: all sessions share what was compiled.
            self.session: Any = type(base)(base.sparkContext, base._jsparkSession.cloneSession())
            return
        # `newSession` would start without the settings of the run's session.
        self.session = base.cloneSession()
        client = self.session.client
        client.set_retry_policies(base.client.get_retry_policies())
        self._stub = client._stub = _WatchedStub(client._stub)
        client.add_artifacts = self._stub.noting(client.add_artifacts)

    @property
    def is_changed(self) -> bool:
        """Whether it must not serve another attempt."""
        return self._stub is None or self._stub.is_changed

    def end(self) -> None:
        """Free what the server keeps. Not by `stop()`, which would stop a local server, or a classic context."""
        if is_remote():
            # It ends by itself later if it cannot be ended now; an error of the attempt must not be hidden.
            with contextlib.suppress(Exception):
                self.session.client.release_session()
                self.session.client.close()


class _WatchedStub:
    """The remote calls of a Connect client; notes those that may change the session for whatever comes after them."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub
        self.is_changed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stub, name)

    def ExecutePlan(self, request: Any, **options: Any) -> Any:
        """Queries change nothing; commands, SQL texts among them, may."""
        plan = request.plan
        is_compressed_query = plan.HasField("compressed_operation") and plan.compressed_operation.op_type == _RELATION
        self.is_changed |= not (plan.HasField("root") or is_compressed_query)
        return self._stub.ExecutePlan(request, **options)

    def AnalyzePlan(self, request: Any, **options: Any) -> Any:
        """Cached frames live on."""
        self.is_changed |= request.WhichOneof("analyze") in ("persist", "unpersist")
        return self._stub.AnalyzePlan(request, **options)

    def Config(self, request: Any, **options: Any) -> Any:
        """Settings hold for the session."""
        self.is_changed |= request.operation.WhichOneof("op_type") in ("set", "unset")
        return self._stub.Config(request, **options)

    def noting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call that always changes the session."""

        def changed(*arguments: Any, **options: Any) -> Any:
            self.is_changed = True
            return call(*arguments, **options)

        return changed


@contextlib.contextmanager
def unwatched(session: Any) -> Iterator[None]:
    """Let what this block does to a session not count: it undoes it itself."""
    stub = session.client._stub if is_remote() else None
    before = getattr(stub, "is_changed", False)
    try:
        yield
    finally:
        if isinstance(stub, _WatchedStub):
            stub.is_changed = before


@contextlib.contextmanager
def _active(session: Any) -> Iterator[None]:
    """Let `SparkSession.active()` in this thread be this session."""
    if is_remote():
        held = type(session)._active_session
        before = getattr(held, "session", None)
        held.session = session
        try:
            yield
        finally:
            held.session = before
        return
    java: Any = session._jvm.org.apache.spark.sql.classic.SparkSession
    java.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        java.clearActiveSession()


def collected(frame: DataFrame) -> Table:
    """The rows of a frame. `toArrow` of a Connect client asks for the schema first, and casts to it: a struct that is
    null where its fields are NOT NULL would be refused.
    """
    unasked = getattr(frame, "_to_table", None) if is_remote() else None
    return frame.toArrow() if unasked is None else unasked()[0]


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
