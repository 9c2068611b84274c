"""Errors of a pipeline's own code: each names the pipeline, what is wrong and the next step."""

from __future__ import annotations

from queue_pipeline.errors import QueuePipelineError


class TransformError(QueuePipelineError):
    """A transform returned what cannot be sent; the batch is released and nothing was written."""


class SparkUnavailableError(QueuePipelineError):
    """Spark cannot be started or reached."""


class SparkLostError(SparkUnavailableError):
    """Spark went away in the middle of a batch: the run ends, and the batch is isolated, or counted if it was."""


class SparkKilledError(QueuePipelineError):
    """Spark died while it worked on one batch and on nothing else."""


class EverythingFailsError(QueuePipelineError):
    """No message is to blame for a failure: the next one would fail as well. Nothing was counted."""


class AbandonedError(QueuePipelineError):
    """The process that held a message ended without a report, perhaps because of it."""


class BatchTimeoutError(QueuePipelineError):
    """An attempt took longer than `batch_seconds`, and was interrupted or left behind."""


class TransformExitError(QueuePipelineError):
    """A transform raised what would end the process, such as SystemExit."""
