-- Which messages belong to batches in work. The messages themselves stay in the queue, in subqueue R, with the end of
-- the lease as their retry time: whoever else reads the queue returns them when the lease is over. While retry_time is
-- the lease that is kept here, a message is its claim's.
CREATE TABLE IF NOT EXISTS {claimed} (
    claim_id TEXT NOT NULL,
    id INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    due TEXT NOT NULL,
    lease TEXT NOT NULL,
    PRIMARY KEY (claim_id, id)
);
CREATE INDEX IF NOT EXISTS {claimed_index} ON {claimed} (id);
