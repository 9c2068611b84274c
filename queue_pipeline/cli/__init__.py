"""`queue-pipeline`, the command line for operators and CI."""

from queue_pipeline.cli.app import main

__all__ = ["main"]
