"""How long a client of Spark Connect tries again: briefly, and not at all once nothing listens at the address."""

from __future__ import annotations

import socket
from typing import Any

from pyspark.sql.utils import is_remote

from queue_pipeline.processing.spark.internals import endpoint

RETRIES = 6
"""Of a request to a server that listens: about seven seconds in all."""
_CONNECT_SECONDS = 1.0


def give_up_soon(session: Any) -> None:
    """Let a server that died be noticed at once: the client would try for ten minutes, and again at exit."""
    if not is_remote():
        return
    from pyspark.sql.connect.client.retries import DefaultPolicy

    host, port = endpoint(session)

    class WhileListening(DefaultPolicy):
        """Retries as the default does, while a server is there."""

        def can_retry(self, exception: BaseException) -> bool:
            return super().can_retry(exception) and not refuses(host, port)

    policy = WhileListening(max_retries=RETRIES, initial_backoff=50, backoff_multiplier=4, max_backoff=2000, jitter=100)
    session.client.set_retry_policies([policy])


def refuses(host: str, port: int) -> bool:
    """Whether a machine answers that no process listens; a network that does not answer may come back."""
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
