"""Replies without a waiting request: why that is so, in words for the log and for the error queue."""

from __future__ import annotations

from queue_pipeline.client.pending import Ending
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.failed.stack_frames import frame_of, trace_at
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import ReceivedMessage

LATE = "LateReply"
UNMATCHED = "UnmatchedReply"


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
