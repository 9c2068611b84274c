-- A queue in the layout of NGinn.MessageBus: columns, order and meaning are those of its SQL Server table, times are in
-- UTC. The id in the index keeps messages of one moment in the order of their sending.
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
