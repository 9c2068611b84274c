"""What Dagster loads: everything in the folder defs."""

from pathlib import Path

from dagster import Definitions, definitions, load_from_defs_folder


@definitions
def defs() -> Definitions:
    """Every component of the folder."""
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
