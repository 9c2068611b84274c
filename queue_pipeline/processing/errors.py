"""Errors of a pipeline's own code: each names the pipeline, what is wrong and the next step."""

from __future__ import annotations

from queue_pipeline.transport.errors import QueuePipelineError


class TransformError(QueuePipelineError):
    """A transform returned what cannot be sent; the batch is released and nothing was written."""


class SparkUnavailableError(QueuePipelineError):
    """Spark cannot be started or reached."""


class SparkLostError(SparkUnavailableError):
    """Spark went away in the middle of a batch, which may be what ended it."""


class AbandonedError(QueuePipelineError):
    """The process that had a message ended without a word, perhaps because of it."""
