"""A project that create-dagster made."""
