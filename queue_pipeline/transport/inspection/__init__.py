"""Looking at a queue without taking anything: peek, browse, status."""
