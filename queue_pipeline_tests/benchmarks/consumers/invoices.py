"""The work in plain Python: an order in, an invoice out, with the headers that an endpoint gives its answer."""

from __future__ import annotations

import json
import json.encoder
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.messages import new_row_ids

MESSAGE_TYPE = "Shop.Messages.Invoice"
ENDPOINT = "sent"
"""What the pipeline of ours calls itself, too."""

Result = tuple[uuid.UUID, str, bytes]

_KEPT = ("order", "customer", "note", "lines")
# An encoder that is made once: `json.dumps` with separators makes a new one at every call.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_quote = json.encoder.encode_basestring_ascii


def invoice(body: bytes) -> bytes:
    """The order with its total."""
    order = json.loads(body)
    result = {name: order[name] for name in _KEPT}
    result["total"] = round(sum([line["quantity"] * line["price"] for line in order["lines"]]), 2)
    return _encode(result).encode()


class Envelopes:
    """Headers of results; what is the same for all results of a batch is put together once."""

    def __init__(self) -> None:
        same = {
            wire.ENCLOSED_MESSAGE_TYPES: MESSAGE_TYPE,
            wire.MESSAGE_INTENT: "Send",
            wire.CONTENT_TYPE: "application/json",
            wire.TIME_SENT: wire.format_timestamp(datetime.now(UTC)),
            wire.ORIGINATING_ENDPOINT: ENDPOINT,
            wire.ORIGINATING_MACHINE: wire.machine_name(),
            wire.ORIGINATING_HOST_ID: wire.host_id(),
            wire.REPLY_TO_ADDRESS: ENDPOINT,
        }
        self._same = wire.encode(same)[1:]

    def answer(self, identity: str, headers: dict[str, str]) -> str:
        """The header text of the result of a message with these headers."""
        related = _quote(headers[wire.MESSAGE_ID])
        return (
            f'{{"{wire.MESSAGE_ID}":"{identity}",'
            f'"{wire.CORRELATION_ID}":{_quote(headers[wire.CORRELATION_ID])},'
            f'"{wire.CONVERSATION_ID}":{_quote(headers[wire.CONVERSATION_ID])},'
            f'"{wire.RELATED_TO}":{related},{self._same}'
        )


def results(rows: Iterable[tuple[str, bytes]], count: int) -> Iterator[Result]:
    """What becomes of a batch: a row of the output queue for each header text and body."""
    envelopes = Envelopes()
    for identity, (headers, body) in zip(new_row_ids(count), rows, strict=True):
        yield uuid.UUID(identity), envelopes.answer(identity, json.loads(headers)), invoice(body)


def result(headers: dict[str, str], body: bytes) -> Result:
    """The same for one message."""
    (identity,) = new_row_ids(1)
    return uuid.UUID(identity), Envelopes().answer(identity, headers), invoice(body)
