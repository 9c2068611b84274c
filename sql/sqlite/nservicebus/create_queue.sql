-- A queue. AUTOINCREMENT: a RowVersion is never used twice, also when the queue ran empty in between.
CREATE TABLE IF NOT EXISTS {queue} (
    Id TEXT NOT NULL,
    Expires TEXT,
    Headers TEXT NOT NULL,
    Body BLOB,
    RowVersion INTEGER PRIMARY KEY AUTOINCREMENT
);
CREATE INDEX IF NOT EXISTS {expires_index} ON {queue} (Expires) WHERE Expires IS NOT NULL;
