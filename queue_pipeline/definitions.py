"""What Dagster loads: everything in the defs folder."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from queue_pipeline.loading import uncollected


@dg.definitions
def defs() -> dg.Definitions:
    """The project's definitions."""
    with uncollected():
        return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
