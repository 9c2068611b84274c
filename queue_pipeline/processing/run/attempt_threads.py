"""The threads in which a run tries its batches: an attempt that never returns keeps neither the run nor its process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from queue_pipeline.transport.claims.claim import Claim

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InWork:
    """A claim that a thread works on, and until when it is waited for."""

    claim: Claim
    until: float
    hung: bool = False
    """Whether an attempt on it never returned, and the thread only counts the failure of its messages."""


class AttemptThreads:
    """Daemon threads, one per attempt in work; an idle thread takes the next attempt.

    `concurrent.futures` joins its threads at exit: an attempt that hangs would keep the process. Threads are reused
    because a classic Spark keeps a Java thread for each of them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0

    def submit(self, attempt: Callable[..., T], *values: object) -> Future[T]:
        """Carry out an attempt; its result, or what it raised, is in the future."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()

        def carry_out() -> None:
            try:
                result = attempt(*values)
            except BaseException as error:
                self._idle.release()
                future.set_exception(error)
            else:
                # The thread is free before the result is known, because the run may submit its next attempt at once.
                self._idle.release()
                future.set_result(result)

        if not self._idle.acquire(blocking=False):
            self._started += 1
            threading.Thread(target=self._loop, name=f"{self._name} {self._started}", daemon=True).start()
        self._work.put(carry_out)
        return future

    def end(self) -> None:
        """Let the threads end that are idle, and the others when their attempt returns."""
        for _ in range(self._started):
            self._work.put(None)

    def _loop(self) -> None:
        while (carry_out := self._work.get()) is not None:
            carry_out()
            # What it holds must not live until the next attempt.
            del carry_out
