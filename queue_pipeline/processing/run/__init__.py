"""One run: it takes batches until the queue is empty, tries them, and decides what becomes of those that fail."""
