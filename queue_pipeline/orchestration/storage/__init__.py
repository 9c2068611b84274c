"""Dagster's own storage: what it says about the health of runs, and removing what is old."""
