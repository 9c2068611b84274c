"""Looking at a queue without taking anything: browse and status."""
