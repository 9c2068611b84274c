"""The proof that a queue can be processed: which code and Spark last processed one of its messages, in the database."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Mapping
from importlib.metadata import version

from queue_pipeline.transport.claims.failure_counts import FailureCounts
from queue_pipeline.transport.errors import QueuePipelineError

logger = logging.getLogger(__name__)


def proof_of(code: str | None, spark_config: Mapping[str, object]) -> str | None:
    """What stands for a version of the code and a setting of Spark; None if the code is not watched."""
    if code is None:
        return None
    properties = "".join(f"{name}={value}\n" for name, value in sorted(spark_config.items()))
    setting = hashlib.sha256(f"{version('pyspark')}\n{properties}".encode()).hexdigest()[:12]
    return f"code {code}, Spark {setting}"


class Proof:
    """Whether a message of a queue succeeded since the last change of code or Spark; thread-safe."""

    def __init__(self, counts: FailureCounts, queue: str, text: str | None) -> None:
        """`queue` is a canonical address; without a `text` only successes of this process count."""
        self._counts = counts
        self._queue = queue
        self._text = text
        self._is_noted = False
        self._lock = threading.Lock()

    def note(self) -> None:
        """A message succeeded."""
        with self._lock:
            was_noted, self._is_noted = self._is_noted, True
        if not was_noted and self._text is not None:
            try:
                self._counts.prove(self._queue, self._text)
            except QueuePipelineError as error:
                # The message is processed all the same; the next run notes it.
                logger.warning("that %s can be processed could not be noted: %s", self._queue, error)

    @property
    def is_there(self) -> bool:
        """Whether one succeeded, here or in another process."""
        return self._is_noted or (self._text is not None and self._counts.proof(self._queue) == self._text)
