"""The one thread that consumes a client's callback queue, and looks into it only as often as requests call for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from queue_pipeline.client.pending import Ending, PendingRequests
from queue_pipeline.client.reply import Reply
from queue_pipeline.client.settings import CallbackSettings
from queue_pipeline.errors import CommitUnknownError, QueuePipelineError, TransientDatabaseError
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.database.backoff import Backoff
from queue_pipeline.transport.failed.error_message import Failure, error_message
from queue_pipeline.transport.failed.stack_frames import frame_of, trace_at
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import Operation, ReceivedMessage
from queue_pipeline.transport.transport import QueueTransport

LATE = "LateReply"
UNMATCHED = "UnmatchedReply"
TROUBLE_BACKOFF = Backoff(first=1.0, longest=10.0)
"""Between looks that fail."""

logger = logging.getLogger(__name__)


class CallbackReceiver:
    """Takes replies in batches and hands them to the waiting requests, once the batch is committed."""

    def __init__(
        self,
        transport: QueueTransport,
        queue: QueueTable,
        endpoint: str,
        pending: PendingRequests,
        settings: CallbackSettings,
    ) -> None:
        self._transport = transport
        self._queue = queue
        self._endpoint = endpoint
        self._pending = pending
        self._settings = settings
        self._changed = threading.Condition()
        self.stopped = False
        self._hurried = False
        self._thread: threading.Thread | None = None
        self._handed_over: set[str] = set()
        """Row ids of replies that were handed over and may come again: the commit that took them had no answer."""
        self._trouble = ""

    def hurry(self) -> None:
        """A request was sent: look soon, and often for a while. The first call starts the thread."""
        with self._changed:
            self._hurried = True
            if self._thread is None and not self.stopped:
                # A daemon: a program that forgets to close its client can still end.
                self._thread = threading.Thread(target=self._run, name=f"replies to {self._queue.table}", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self) -> None:
        """Stop; a look in progress ends first."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()

    def join(self, seconds: float) -> bool:
        """Wait for the end of the thread; False if it takes longer."""
        thread = self._thread
        if thread is None or self.is_this_thread():
            return True
        thread.join(seconds)
        return not thread.is_alive()

    def is_this_thread(self) -> bool:
        """Whether the caller is what runs in the thread, such as a callback of a future."""
        return threading.current_thread() is self._thread

    def _run(self) -> None:
        pause, last, next_look, not_before, failures = self._settings.first_delay, 0.0, 0.0, 0.0, 0
        while True:
            self._pending.time_out_all()
            with self._changed:
                if self.stopped:
                    return
                if self._hurried:
                    self._hurried, pause = False, self._settings.first_delay
                    next_look = max(not_before, min(next_look, last + pause))
                wait = next_look - time.monotonic()
                if wait > 0:
                    left = self._pending.seconds_left()
                    self._changed.wait(wait if left is None else min(wait, left))
                    continue
            last = time.monotonic()
            taken = self._look()
            now = time.monotonic()
            if taken is None:
                failures += 1
                next_look = not_before = now + TROUBLE_BACKOFF.delay(failures)
                continue
            failures = 0
            pause = self._settings.first_delay if taken else min(2 * pause, self._settings.peek_delay)
            if taken >= self._settings.batch:
                next_look = now
            else:
                next_look = now + (pause if len(self._pending) else self._settings.idle_delay)

    def _look(self) -> int | None:
        """Take what is there; returns how many replies that were, or None if that failed."""
        try:
            # A peek takes no lock; a receive on SQLite locks out all writers.
            taken = self._take() if self._transport.peek(self._queue, 1) else 0
        except TransientDatabaseError as error:
            logger.debug("%s: %s", self._queue, error)
            return 0
        except QueuePipelineError as error:
            trouble = f"replies cannot be taken from {self._queue}: {error}"
            if trouble != self._trouble:
                self._trouble = trouble
                logger.warning("%s", trouble)
            return None
        except Exception:
            # The thread goes on: the next requests need their replies.
            logger.exception("replies cannot be taken from %s", self._queue)
            return None
        self._trouble = ""
        return taken

    def _take(self) -> int:
        matched: dict[str, ReceivedMessage] = {}
        unmatched: list[ReceivedMessage] = []
        try:
            with self._transport.receive(self._queue, self._settings.batch) as batch:
                taken = len(batch)
                for message in batch:
                    asked = message.headers.get(wire.CORRELATION_ID)
                    if message.id in self._handed_over:
                        continue
                    if asked and asked not in matched and self._pending.is_waiting(asked):
                        matched[asked] = message
                    else:
                        unmatched.append(message)
                # One by one: a batch of sends would take two copies of one reply for one message.
                for operation in self._aside(unmatched):
                    batch.send([operation])
        except CommitUnknownError:
            # The replies are either gone or come again, and then they are known by their row ids.
            self._handed_over.update(message.id for message in matched.values())
            self._answer(matched)
            raise
        # Those that did not come are kept in mind: a lost session may lock their rows for a while.
        self._handed_over.difference_update(message.id for message in batch)
        self._answer(matched)
        return taken

    def _answer(self, matched: dict[str, ReceivedMessage]) -> None:
        """Hand replies over; those whose requests ended meanwhile have no receiver."""
        too_late = [
            message
            for asked, message in matched.items()
            if not self._pending.answer(asked, Reply(message.body, message.headers))
        ]
        for operation in self._aside(too_late):
            self._transport.dispatch([operation])

    def _aside(self, messages: Sequence[ReceivedMessage]) -> list[Operation]:
        operations = []
        for message in messages:
            asked = message.headers.get(wire.CORRELATION_ID)
            failure = why_unmatched(message, self._queue.canonical, self._pending.ending(asked))
            discarded = self._settings.unmatched == "discard"
            logger.warning("%s; %s", failure.message, "discarded" if discarded else "moved to the error queue")
            if not discarded:
                copy = error_message(message.headers, message.body, failure, self._queue.canonical, self._endpoint)
                operations.append(Operation(self._transport.error_queue, copy))
        return operations


def why_unmatched(message: ReceivedMessage, queue: str, ending: Ending | None) -> Failure:
    """What is said of a reply; `ending` is that of the request which it names, if it was known here."""
    correlation_id = message.headers.get(wire.CORRELATION_ID)
    subject = f"reply {message.message_id} in {queue}"
    data = {"Message ID": message.message_id, "Transport message ID": message.id}
    if not correlation_id:
        kind, why = UNMATCHED, f"{subject} has no correlation id, so it is not known what it answers"
    elif ending is None:
        kind = UNMATCHED
        why = (
            f"{subject} answers {correlation_id}, which is no request in flight of this client; if another process "
            "uses the same callback queue, give each a discriminator of its own"
        )
    else:
        kind = LATE if ending is Ending.TIMED_OUT else UNMATCHED
        why = f"{subject} answers request {correlation_id}, which {ending.value}"
    return Failure(kind, why, trace_at(kind, why, [frame_of(why_unmatched)]), data=data)
