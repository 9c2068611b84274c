-- name: create_queue
-- A queue. AUTOINCREMENT: a RowVersion is never used twice, also when the queue was empty in between. Locks: the
-- database, as every write.
CREATE TABLE IF NOT EXISTS {queue} (
    Id TEXT NOT NULL,
    Expires TEXT,
    Headers TEXT NOT NULL,
    Body BLOB,
    RowVersion INTEGER PRIMARY KEY AUTOINCREMENT
);
CREATE INDEX IF NOT EXISTS {expires_index} ON {queue} (Expires) WHERE Expires IS NOT NULL;

-- name: create_delayed
-- Messages that wait for their time; a mover brings them to the queue when they are due. Locks: the database, as every
-- write.
CREATE TABLE IF NOT EXISTS {delayed} (
    Id TEXT NOT NULL,
    Headers TEXT NOT NULL,
    Body BLOB,
    Due TEXT NOT NULL,
    RowVersion INTEGER PRIMARY KEY AUTOINCREMENT
);
CREATE INDEX IF NOT EXISTS {due_index} ON {delayed} (Due, RowVersion);

-- name: create_claimed
-- The messages of batches in work, moved out of the queue until their claim is completed. Locks: the database, as every
-- write.
CREATE TABLE IF NOT EXISTS {claimed} (
    ClaimId TEXT NOT NULL,
    Id TEXT NOT NULL,
    Expires TEXT,
    Headers TEXT NOT NULL,
    Body BLOB,
    RowVersion INTEGER NOT NULL,
    PRIMARY KEY (ClaimId, RowVersion)
);

-- name: add_body_string
-- The body as text for people who read the table; computed by the database, never written. Locks: the database, as
-- every write.
ALTER TABLE {queue} ADD COLUMN BodyString TEXT GENERATED ALWAYS AS (CAST(Body AS TEXT)) VIRTUAL;

-- name: body_string_exists
-- One row when the queue already shows its bodies as text. Locks: none.
SELECT 1 FROM pragma_table_xinfo({queue_name}) WHERE name = 'BodyString'
