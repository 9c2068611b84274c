"""Batch processing with Dagster and PySpark over SQL tables used as message queues."""

__version__ = "0.1.0"
