"""Programs that send, receive and claim on one queue at the same time, each in a process of its own."""

from __future__ import annotations

import json
import sys

from queue_pipeline.transport import OutgoingMessage, QueueTransport, RowsRead
from queue_pipeline.transport.claims.completion import Completion


def main() -> None:
    """Run one part: `send FIRST LAST`, `receive` or `claim`, until the control queue says that all was sent."""
    part, url, schema, *numbers = sys.argv[1:]
    with QueueTransport(url, schema=schema) as transport:
        if part == "send":
            send(transport, *map(int, numbers))
        else:
            print(json.dumps(take(transport, part)))


def send(transport: QueueTransport, first: int, last: int) -> None:
    """Send numbered messages in small batches, so that takers meet a queue that is being filled."""
    for start in range(first, last, 250):
        batch = [OutgoingMessage(str(n).encode(), {"n": str(n)}) for n in range(start, min(start + 250, last))]
        transport.send("orders", batch)
    transport.send("done", OutgoingMessage(b"", {}))


def take(transport: QueueTransport, part: str) -> list[int]:
    """Take messages until both senders are done and nothing is left; every seventh batch fails first."""
    taken: list[int] = []
    batches = 0
    while True:
        finished = transport.peek("done") >= 2
        batches += 1
        fail = batches % 7 == 0
        got = _claim(transport, fail) if part == "claim" else _receive(transport, fail)
        taken += got or []
        if not got and not fail and finished and not transport.claims.list() and not transport.peek("orders"):
            return taken


def _claim(transport: QueueTransport, fail: bool) -> list[int]:
    claim = transport.claim("orders", f"process {id(transport)}", 180)
    if claim is None:
        return []
    if fail:
        transport.claims.release(claim)
        return []
    batches = list(transport.claim_reader.read(claim))
    bodies = [body for batch in batches for body in batch.column("body").to_pylist()]
    versions = [int(version) for batch in batches for version in batch.column("row_version").to_numpy()]
    transport.claims.complete(Completion(claim, read=RowsRead.of(versions)))
    return [int(body or b"") for body in bodies]


def _receive(transport: QueueTransport, fail: bool) -> list[int]:
    try:
        with transport.receive("orders", 180) as batch:
            if fail:
                raise InterruptedError
            return [int(message.body) for message in batch]
    except InterruptedError:
        return []


if __name__ == "__main__":
    main()
