"""Claims: batches that are held durably, and the one transaction that completes them."""
