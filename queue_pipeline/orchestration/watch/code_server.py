"""The code server that evaluates a tick: whether it stops, and which runs are processes of its own.

Dagster tells a sensor neither, so that its server is looked for on the stack. Without it a tick would loop on after a
SIGTERM, and the server waits for its ticks.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection
from types import FrameType
from typing import Any

SERVICER = "DagsterApiServer"


class CodeServer:
    """A code server as one of its ticks sees it; outside of one, for example in a test, it never stops."""

    def __init__(self, servicer: Any = None) -> None:
        self.is_known = servicer is not None
        """Whether there is one at all."""
        never = threading.Event()
        # Set by a signal, by the request to shut down, and when the process that started the server is gone.
        self._stopping: threading.Event = getattr(servicer, "_shutdown_once_executions_finish_event", never)
        self._runs: Collection[str] = getattr(servicer, "_executions", ())

    @property
    def is_stopping(self) -> bool:
        """Whether it accepts no further run, and ends when its runs and ticks have ended."""
        return self._stopping.is_set()

    @property
    def runs(self) -> list[str]:
        """The ids of the runs that are its own processes: they are killed with it."""
        return list(self._runs)

    def sleep(self, seconds: float) -> None:
        """Sleep, but not for longer than until it stops."""
        self._stopping.wait(seconds)


def this_code_server() -> CodeServer:
    """The server that called this function, through any number of others."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        servicer = frame.f_locals.get("self")
        if type(servicer).__name__ == SERVICER:
            return CodeServer(servicer)
        frame = frame.f_back
    return CodeServer()
