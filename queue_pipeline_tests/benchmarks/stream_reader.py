"""A separate process that streams one claim and reports how much memory that took."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from queue_pipeline.transport import Claim, QueueTransport

URL_VARIABLE = "QUEUE_PIPELINE_BENCH_URL"


def peak_memory_mb() -> float:
    """The most memory that this process had in use.

    Not `getrusage`: its figure survives exec, so that a child starts with the size of its parent.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not tell the peak memory of a process (VmHWM)")


def forget_peak_memory() -> None:
    """Restart the peak from what is in use now."""
    Path("/proc/self/clear_refs").write_text("5")


def read(claim: Claim, url: str) -> dict[str, Any]:
    """Read the claim from end to end, holding on to nothing."""
    with QueueTransport(url) as transport:
        transport.peek(claim.queue)
        before = peak_memory_mb()
        start = time.perf_counter()
        messages = size = 0
        for batch in transport.claim_reader.read(claim):
            messages += batch.num_rows
            size += batch.nbytes
        took = time.perf_counter() - start
    return {
        "messages": messages,
        "bytes": size,
        "seconds": took,
        "before_mb": before,
        "peak_mb": peak_memory_mb(),
    }


if __name__ == "__main__":
    print(json.dumps(read(Claim(**json.load(sys.stdin)), os.environ[URL_VARIABLE])))
