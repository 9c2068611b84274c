"""The worked example's queues, table and sample orders; `scripts/example` and the demo use it."""
