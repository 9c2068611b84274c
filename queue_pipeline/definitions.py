"""What Dagster loads: everything in the defs folder."""

from __future__ import annotations

from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    """The project's definitions. Assets that are materialized by hand, too, need no process for each step."""
    loaded = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return dg.Definitions.merge(loaded, dg.Definitions(executor=dg.in_process_executor))
