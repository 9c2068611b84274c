"""The test suite of queue_pipeline."""
