"""A claim through a `BatchProcessor` without recovery: errors reach the test as they are."""

from __future__ import annotations

from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.messages.message import TransactionMode


def process(processor: BatchProcessor, pipeline: QueuePipeline, claim: Claim) -> BatchReport:
    """Read, transform and complete, in the order in which a run does."""
    batch = processor.backend.read(claim, with_sample=False)
    if pipeline.transaction_mode is TransactionMode.UNRELIABLE:
        processor.take(batch)
    return processor.process(batch)
