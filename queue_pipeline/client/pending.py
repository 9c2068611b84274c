"""Requests in flight: which reply belongs to which, and how the last ones ended."""

from __future__ import annotations

import enum
import heapq
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from queue_pipeline.client.reply import Reply
from queue_pipeline.errors import RequestTimeoutError

REMEMBERED = 10_000
"""How many ended requests are remembered, to explain replies that arrive late."""


class Ending(enum.Enum):
    """How a request ended."""

    ANSWERED = "was answered already"
    TIMED_OUT = "timed out before"
    NOT_SENT = "was given up because sending it failed"
    CANCELLED = "was cancelled by its sender"
    CLOSED = "was in flight when the client was closed"


@dataclass(frozen=True, slots=True)
class InFlight:
    """A request that waits for its reply."""

    message_id: str
    queue: str
    seconds: float
    deadline: float
    future: Future[Reply]


class PendingRequests:
    """Requests by their ids. Taking one out ends it, so that it ends once."""

    def __init__(self, callback_queue: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._callback_queue = callback_queue
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[str, InFlight] = {}
        self._deadlines: list[tuple[float, str]] = []
        """A heap, asked for its first one at every look; requests that ended leave it when they come to the top."""
        self._ended: OrderedDict[str, Ending] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, message_id: str, queue: str, seconds: float) -> Future[Reply]:
        """A request that is about to be sent: its reply may be there before the send has returned."""
        future: Future[Reply] = Future()
        deadline = self._clock() + seconds
        with self._lock:
            self._waiting[message_id] = InFlight(message_id, queue, seconds, deadline, future)
            heapq.heappush(self._deadlines, (deadline, message_id))
        return future

    def is_waiting(self, message_id: str | None) -> bool:
        """Whether this request still waits for its reply."""
        with self._lock:
            return message_id in self._waiting

    def answer(self, message_id: str, reply: Reply) -> bool:
        """Hand a reply over; False if no request waits for it any more."""
        request = self._take(message_id, Ending.ANSWERED)
        if request is None:
            return False
        if not request.future.set_running_or_notify_cancel():
            self._remember(message_id, Ending.CANCELLED)
            return False
        request.future.set_result(reply)
        return True

    def fail(self, message_id: str, ending: Ending, error: Exception) -> None:
        """End a request without a reply, if it has not ended."""
        request = self._take(message_id, ending)
        if request is not None and request.future.set_running_or_notify_cancel():
            request.future.set_exception(error)

    def drop(self, message_id: str, ending: Ending) -> None:
        """End a request whose sender got an error and does not wait."""
        request = self._take(message_id, ending)
        if request is not None:
            request.future.cancel()

    def time_out(self, message_id: str) -> None:
        """End one request because its time is over, if it has not ended."""
        request = self._waiting.get(message_id)
        if request is not None:
            error = RequestTimeoutError(request.queue, message_id, self._callback_queue, request.seconds)
            self.fail(message_id, Ending.TIMED_OUT, error)

    def time_out_all(self) -> None:
        """End the requests whose time is over."""
        now = self._clock()
        while (first := self._first()) is not None and first[0] <= now:
            self.time_out(first[1])

    def fail_all(self, ending: Ending, error: Callable[[InFlight], Exception]) -> None:
        """End every request."""
        with self._lock:
            waiting = list(self._waiting.values())
        for request in waiting:
            self.fail(request.message_id, ending, error(request))

    def seconds_left(self) -> float | None:
        """How long until the next one times out; None if there is none."""
        first = self._first()
        return None if first is None else max(0.0, first[0] - self._clock())

    def ending(self, message_id: str | None) -> Ending | None:
        """How a request ended, if it was one of the last."""
        with self._lock:
            return self._ended.get(message_id or "")

    def _first(self) -> tuple[float, str] | None:
        with self._lock:
            while self._deadlines and self._deadlines[0][1] not in self._waiting:
                heapq.heappop(self._deadlines)
            return self._deadlines[0] if self._deadlines else None

    def _take(self, message_id: str, ending: Ending) -> InFlight | None:
        with self._lock:
            request = self._waiting.pop(message_id, None)
        if request is not None:
            self._remember(message_id, ending)
        return request

    def _remember(self, message_id: str, ending: Ending) -> None:
        with self._lock:
            self._ended[message_id] = ending
            while len(self._ended) > REMEMBERED:
                self._ended.popitem(last=False)
