"""`QueueClient`: asks a queue and waits for the reply to that very request, with hundreds of others in flight."""

from __future__ import annotations

import concurrent.futures
import logging
import os
import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING

from queue_pipeline.client.callback_receiver import CallbackReceiver
from queue_pipeline.client.pending import Ending, InFlight, PendingRequests
from queue_pipeline.client.reply import Reply
from queue_pipeline.client.settings import CallbackSettings
from queue_pipeline.errors import (
    ClientClosedError,
    ConfigurationError,
    DatabaseUnavailableError,
    InvalidMessageError,
    QueueNotFoundError,
)
from queue_pipeline.transport.addresses.queues import QueueTable, instance_address
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.bodies import Body, encoded
from queue_pipeline.transport.messages.message import OutgoingMessage, new_message
from queue_pipeline.transport.transport import Queue, QueueTransport

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

DEFAULT_TIMEOUT = 30.0
CLOSE_SECONDS = 30.0
"""How long `close` waits for a look that is in progress, as into a database that does not answer."""
OWN_HEADERS = (wire.MESSAGE_ID, wire.CORRELATION_ID, wire.REPLY_TO_ADDRESS, wire.MESSAGE_INTENT)
"""Headers that relate a reply to its request; a caller must not set them."""

logger = logging.getLogger(__name__)


class QueueClient:
    """Sends requests with the address of its callback queue, `<endpoint>.<discriminator>`, and receives replies.

    One thread consumes that queue from the first request until `close`. Threads may share a client; a forked process
    needs its own, with another discriminator.
    """

    def __init__(
        self,
        transport: QueueTransport | URL | Engine | str | None = None,
        endpoint: str = "client",
        *,
        discriminator: str | None = None,
        settings: CallbackSettings | None = None,
        create: bool = False,
    ) -> None:
        """The discriminator is this machine's name by default.

        `create` creates the callback queue and the error queue if they are missing, for development.
        """
        self._owns_transport = not isinstance(transport, QueueTransport)
        self.transport = transport if isinstance(transport, QueueTransport) else QueueTransport(transport)
        self.endpoint = endpoint
        self.settings = settings or CallbackSettings()
        self._address = instance_address(endpoint, discriminator)
        self._create = create
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._open: tuple[QueueTable, PendingRequests, CallbackReceiver] | None = None

    @property
    def callback_queue(self) -> QueueTable:
        """Where replies arrive."""
        return self.transport.resolve(self._address)

    def open(self) -> QueueClient:
        """Check that the callback queue exists, which the first request does otherwise."""
        self._opened()
        return self

    def request(
        self,
        queue: Queue,
        body: Body,
        timeout: float = DEFAULT_TIMEOUT,
        *,
        message_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Reply:
        """Ask and wait: the reply to this request, or a `RequestTimeoutError` after `timeout` seconds."""
        _, pending, receiver = self._opened()
        if receiver.is_this_thread():
            raise ConfigurationError(
                "a callback of one request waits for another, in the thread that takes the replies; use submit there"
            )
        message_id, future = self._ask(queue, body, timeout, message_type, headers, content_type)
        try:
            concurrent.futures.wait([future], timeout)
        except BaseException:
            future.cancel()
            raise
        pending.time_out(message_id)
        return future.result()

    def submit(
        self,
        queue: Queue,
        body: Body,
        timeout: float = DEFAULT_TIMEOUT,
        *,
        message_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Future[Reply]:
        """Send a request and return at once; callbacks of the future run in the thread that takes the replies."""
        return self._ask(queue, body, timeout, message_type, headers, content_type)[1]

    def send(
        self,
        queue: Queue,
        body: Body,
        *,
        message_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> str:
        """Send without asking for a reply; returns the message's id."""
        self._check_usable()
        message = self._message(body, message_type, headers, content_type)
        self.transport.send(queue, message)
        return message.headers[wire.MESSAGE_ID]

    def close(self) -> None:
        """End requests in flight with a `ClientClosedError`, and wait for the thread to end."""
        if self._process != os.getpid():
            return
        with self._lock:
            self._closed, opened = True, self._open
        if opened is not None:
            _, pending, receiver = opened
            receiver.stop()
            pending.fail_all(Ending.CLOSED, self._closed_meanwhile)
            if not receiver.join(CLOSE_SECONDS):
                logger.warning("%s: the database does not answer; its thread was left behind", self._name)
        if self._owns_transport:
            self.transport.close()

    def __enter__(self) -> QueueClient:
        try:
            return self.open()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _name(self) -> str:
        return f"client {self._address.table}"

    def _opened(self) -> tuple[QueueTable, PendingRequests, CallbackReceiver]:
        self._check_usable()
        with self._lock:
            if self._open is None:
                # Another thread may have closed it meanwhile, and found nothing to stop.
                self._check_usable()
                queue = self.callback_queue
                self.transport.book.check_length(queue)
                self._make_sure_of(queue)
                pending = PendingRequests(queue.canonical)
                receiver = CallbackReceiver(self.transport, queue, self.endpoint, pending, self.settings)
                # The thread of a client that nothing refers to any more ends.
                weakref.finalize(self, receiver.stop)
                self._open = queue, pending, receiver
            return self._open

    def _make_sure_of(self, queue: QueueTable) -> None:
        """Fail now if a queue is missing, and not when a reply has nowhere to go."""
        error_queue = self.transport.resolve(self.transport.error_queue)
        if self._create:
            self.transport.install(plain_queues=[queue, error_queue])
            return
        try:
            self.transport.peek(queue, 1)
            if self.settings.unmatched == "error":
                self.transport.peek(error_queue, 1)
        except QueueNotFoundError as error:
            error.add_note(f"{self._name} needs it for replies; create=True, or --create, creates it too")
            raise

    def _ask(
        self,
        queue: Queue,
        body: Body,
        timeout: float,
        message_type: str | None,
        headers: Mapping[str, str] | None,
        content_type: str,
    ) -> tuple[str, Future[Reply]]:
        callback_queue, pending, receiver = self._opened()
        if not 0 < timeout <= threading.TIMEOUT_MAX:
            raise ConfigurationError(f"a timeout of {timeout} s for a request to {queue}; give seconds above zero")
        if taken := [name for name in headers or () if name in OWN_HEADERS]:
            raise InvalidMessageError(
                f"header {taken[0]} of a request is the client's own, because its reply is found by it; leave it out"
            )
        message = self._message(body, message_type, headers, content_type, callback_queue.canonical)
        message_id = message.headers[wire.MESSAGE_ID]
        destination = self.transport.resolve(queue)
        if destination.layout != callback_queue.layout:
            raise ConfigurationError(
                f"request to {destination}: an endpoint of NGinn.MessageBus cannot answer to {callback_queue}, no "
                "queue of its own; use send there, and read the answers from an NGinn queue"
            )
        # Before the send: the reply can be there before it returns.
        future = pending.add(message_id, destination.canonical, timeout)
        try:
            self.transport.send(destination, message)
        except BaseException as error:
            pending.drop(message_id, Ending.NOT_SENT)
            if isinstance(error, DatabaseUnavailableError):
                raise DatabaseUnavailableError(f"request {message_id} to {destination}: {error}") from error
            raise
        receiver.hurry()
        if receiver.stopped:
            pending.fail_all(Ending.CLOSED, self._closed_meanwhile)
        return message_id, future

    def _message(
        self,
        body: Body,
        message_type: str | None,
        headers: Mapping[str, str] | None,
        content_type: str,
        reply_to: str | None = None,
    ) -> OutgoingMessage:
        return new_message(
            encoded(body),
            message_type=message_type,
            content_type=content_type,
            headers=headers,
            endpoint=self.endpoint,
            reply_to=reply_to,
        )

    def _closed_meanwhile(self, request: InFlight) -> ClientClosedError:
        return ClientClosedError(
            f"{self._name} was closed while request {request.message_id} to {request.queue} was in flight; the request "
            f"was sent, and a reply to it will be in {self.callback_queue}"
        )

    def _check_usable(self) -> None:
        if self._closed:
            raise ClientClosedError(f"{self._name} is closed; open another one")
        if self._process != os.getpid():
            raise ConfigurationError(
                f"{self._name} was made by process {self._process}, and this one is {os.getpid()}, forked from it: "
                "both would take each other's replies; make a client with a discriminator of its own here"
            )
