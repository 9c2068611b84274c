"""The process of a run: once the run is terminated, the process ends, whatever its threads do."""

from __future__ import annotations

import faulthandler
import multiprocessing
import sys
from collections.abc import Sequence
from pathlib import Path

END_SECONDS = 20.0
"""How long a terminated run may take to release what it holds. Dagster reports it as cancelled after that."""


def end_soon() -> None:
    """End this process after `END_SECONDS`, if it is that of a run alone; its log gets the stacks of its threads.

    Python joins threads when it ends, and Spark's client asks a server that may be gone: the interpreter's own watchdog
    waits for neither.
    """
    if is_of_a_run(sys.argv):
        faulthandler.dump_traceback_later(END_SECONDS, exit=True)


def is_of_a_run(arguments: Sequence[str]) -> bool:
    """Whether this process ends with the run that it executes: a code server or Dagster's command line started it."""
    if multiprocessing.parent_process() is not None:
        return True
    program = Path(arguments[0])
    is_dagster = program.name == "dagster" or program.parts[-2:] == ("dagster", "__main__.py")
    return is_dagster and tuple(arguments[1:3]) in {("api", "execute_run"), ("job", "execute")}
