"""A Spark session per attempt: what a transform sets, registers or caches ends with the attempt."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

from queue_pipeline.processing.errors import BatchTimeoutError, SparkUnavailableError
from queue_pipeline.processing.spark.attempt_caches import AttemptCaches
from queue_pipeline.processing.spark.internals.calls import clone_session, end_session
from queue_pipeline.processing.spark.internals.patches import active


class AttemptSessions:
    """A Spark session per attempt: views, settings and functions of a transform reach no other attempt. Thread-safe.

    Each is a clone of the run's own session, which no transform ever sees.
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
            session = clone_session(base)
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
            with active(session):
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
