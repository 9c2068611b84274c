-- name: create_queue
-- A queue in the layout of NGinn.MessageBus: columns, order and meaning are those of its SQL Server table, times are in
-- UTC. The id in the index keeps messages of one moment in the order of their sending. Locks: the database, as every
-- write.
CREATE TABLE IF NOT EXISTS {queue} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    from_endpoint TEXT NOT NULL,
    to_endpoint TEXT NOT NULL,
    subqueue TEXT NOT NULL,
    insert_time TEXT NOT NULL,
    last_processed TEXT,
    retry_count INTEGER NOT NULL,
    retry_time TEXT NOT NULL,
    error_info TEXT,
    correlation_id TEXT,
    label TEXT,
    msg_text TEXT,
    msg_headers TEXT,
    unique_id TEXT
);
CREATE INDEX IF NOT EXISTS {subqueue_index} ON {queue} (subqueue, retry_time, id);

-- name: create_claimed
-- Which messages belong to batches in work. The messages themselves stay in the queue, in subqueue R, with the end of
-- the lease as their retry time: any other reader of the queue returns them when the lease is over. While retry_time
-- equals the lease stored here, a message belongs to its claim. Locks: the database, as every write.
CREATE TABLE IF NOT EXISTS {claimed} (
    claim_id TEXT NOT NULL,
    id INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    due TEXT NOT NULL,
    lease TEXT NOT NULL,
    PRIMARY KEY (claim_id, id)
);
CREATE INDEX IF NOT EXISTS {claimed_index} ON {claimed} (id);

-- name: create_sequences
-- The state of each sequence of messages: the table of NGinn.MessageBus, one row per living sequence. Locks: the
-- database, as every write.
CREATE TABLE IF NOT EXISTS {sequences} (
    id TEXT NOT NULL PRIMARY KEY,
    data TEXT NOT NULL,
    last_modified TEXT NOT NULL
);

-- name: create_subscriptions
-- Who subscribed to what at which publisher: the table of NGinn.MessageBus, shared by all buses of a database. Locks:
-- the database, as every write.
CREATE TABLE IF NOT EXISTS {subscriptions} (
    publisher_endpoint TEXT NOT NULL,
    subscriber_endpoint TEXT NOT NULL,
    message_type TEXT NOT NULL,
    created_date TEXT NOT NULL,
    expiration_date TEXT,
    PRIMARY KEY (publisher_endpoint, message_type, subscriber_endpoint)
);
