"""Loading without the garbage collector, which would search all that was loaded again and again and find nothing.

Every run is a process that loads Dagster, Spark's client and the project.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Let nothing be collected in the block; what exists at its end is never searched again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
