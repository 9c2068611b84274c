"""How long a client of Spark Connect tries again: briefly, and not at all once nothing listens at the address."""

from __future__ import annotations

import socket
from typing import Any

from pyspark.sql.utils import is_remote

from queue_pipeline.processing.spark.internals.calls import endpoint, retry_while

RETRIES = 6
"""Of a request to a server that listens: about seven seconds in all."""
_CONNECT_SECONDS = 1.0


def give_up_soon(session: Any) -> None:
    """Let a server that died be noticed at once: the client would try for ten minutes, and again at exit."""
    if not is_remote() or (found := endpoint(session)) is None:
        return
    retry_while(
        session, lambda: not refuses(*found),
        max_retries=RETRIES, initial_backoff=50, backoff_multiplier=4, max_backoff=2000, jitter=100,
    )  # fmt: skip


def refuses(host: str, port: int) -> bool:
    """Whether a machine answers that no process listens; a network that does not answer may come back."""
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
