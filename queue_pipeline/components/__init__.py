"""Pipelines as a component of Dagster's: declared in YAML, scaffolded by `dg`."""
