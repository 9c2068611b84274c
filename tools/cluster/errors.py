"""What can go wrong with a cluster, in words for whoever started it."""

from __future__ import annotations

from queue_pipeline.transport.errors import QueuePipelineError


class ClusterError(QueuePipelineError):
    """The cluster cannot be started, found or ended."""
