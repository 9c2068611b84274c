"""Makes Dagster's objects of every pipeline that is declared beside this module."""

from __future__ import annotations

import dagster as dg

import queue_pipeline.defs
from queue_pipeline import find_pipelines, queue_definitions


@dg.definitions
def pipelines() -> dg.Definitions:
    """All pipelines at once: queues that several of them touch are one asset, and one sensor watches all.

    The database and Spark are those of the environment, read when a run or a tick starts.
    """
    return queue_definitions(find_pipelines(queue_pipeline.defs))
