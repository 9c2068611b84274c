"""Answers to the requests of a test: a thread that receives from a queue and sends what a function makes of it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence

from queue_pipeline.transport import Operation, OutgoingMessage, QueueTransport, ReceivedMessage
from queue_pipeline.transport.messages import headers as wire

Answers = Callable[[ReceivedMessage], Iterable[OutgoingMessage]]


def reply_to(request: ReceivedMessage, body: bytes = b"", *, code: int | None = None) -> OutgoingMessage:
    """A reply as an endpoint makes it."""
    headers = {
        wire.MESSAGE_ID: str(uuid.uuid4()),
        wire.CORRELATION_ID: request.headers.get(wire.CORRELATION_ID) or request.message_id,
        wire.RELATED_TO: request.message_id,
        wire.MESSAGE_INTENT: "Reply",
    }
    if code is None:
        return OutgoingMessage(body, {**headers, wire.CONTENT_TYPE: "application/json"})
    return OutgoingMessage(b"", {**headers, wire.CONTROL_MESSAGE: "True", wire.RETURN_CODE: str(code)})


def echo(request: ReceivedMessage) -> list[OutgoingMessage]:
    """The body back, so that it is seen whose it is."""
    return [reply_to(request, b"re: " + request.body)]


def answer_waiting(transport: QueueTransport, queue: str, answers: Answers = echo) -> int:
    """Answer what waits in a queue now; returns how many requests that were."""
    with transport.receive(queue, 1_000) as batch:
        send_answers(batch.messages, answers, batch.send)
        return len(batch)


def send_answers(
    requests: Sequence[ReceivedMessage], answers: Answers, send: Callable[[list[Operation]], object]
) -> None:
    """Send the answers one by one: two of them may have one id."""
    for request in requests:
        for answer in answers(request):
            send([Operation(request.headers[wire.REPLY_TO_ADDRESS], answer)])


class Responder:
    """Answers a queue for as long as the block lasts."""

    def __init__(self, transport: QueueTransport, queue: str, answers: Answers = echo) -> None:
        self._transport, self._queue, self._answers = transport, queue, answers
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"responder of {queue}")

    def __enter__(self) -> Responder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            if not self._transport.peek(self._queue, 1) or not answer_waiting(
                self._transport, self._queue, self._answers
            ):
                self._ended.wait(0.01)


def failed(transport: QueueTransport) -> list[Mapping[str, str]]:
    """The headers of what is in the error queue."""
    return [shown.headers for shown in transport.show("error", 1_000)]
