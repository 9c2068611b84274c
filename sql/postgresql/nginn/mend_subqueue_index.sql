-- The index by which messages are found: by subqueue, in the order in which they are due.
CREATE INDEX {index} ON {queue} (subqueue, retry_time, id)
