"""What Dagster loads: everything in the defs folder."""

from __future__ import annotations

from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    """The project's definitions."""
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
