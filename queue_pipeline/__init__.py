"""Batch processing with Dagster and PySpark over SQL tables used as message queues."""

import os

# Arrow's allocator gives memory back to the system after ten milliseconds, and batches that come several times a second
# get it cleared anew each time: measured, two to five of fifteen microseconds a message. In milliseconds, longer than a
# run waits for messages; it is read when Arrow is loaded.
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "600000")

__version__ = "0.1.0"
