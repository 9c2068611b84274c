-- name: exists
-- One row when the table exists. Locks: none.
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = {queue_name} COLLATE NOCASE

-- name: columns
-- Columns of a queue table and their types, for the audit. Only a lone INTEGER PRIMARY KEY is the rowid, which SQLite
-- counts up by itself; any other declaration of RowVersion stays NULL on every send. Locks: none.
SELECT
    c.name,
    CASE
        WHEN c.pk = 1 AND lower(c.type) = 'integer'
            AND (SELECT count(*) FROM pragma_table_xinfo({queue_name}) AS k WHERE k.pk > 0) = 1
            THEN 'integer primary key'
        ELSE c.type
    END
FROM pragma_table_xinfo({queue_name}) AS c

-- name: create_claims
-- One row per claim: its owner, its generation, the end of its lease, and how often its messages have failed. Owner is
-- NULL once the claim was given back. Times are milliseconds since 1970. Locks: the database, as every write.
CREATE TABLE IF NOT EXISTS {claims} (
    ClaimId TEXT NOT NULL PRIMARY KEY,
    Queue TEXT NOT NULL,
    Owner TEXT,
    Generation INTEGER NOT NULL,
    Messages INTEGER NOT NULL,
    Bytes INTEGER NOT NULL,
    FirstRowVersion INTEGER NOT NULL,
    ClaimedAt INTEGER NOT NULL,
    LeaseUntil INTEGER NOT NULL,
    Begun INTEGER NOT NULL DEFAULT 0,
    Isolated INTEGER NOT NULL DEFAULT 0,
    Failures INTEGER NOT NULL DEFAULT 0,
    LastError TEXT
);
CREATE INDEX IF NOT EXISTS {claims_index} ON {claims} (Queue, FirstRowVersion);

-- name: create_outbox
-- Results that Spark executors staged, until their claim is completed: one row per message, numbered in the order of
-- staging, and one row with the manifest of each job. Locks: the database, as every write.
CREATE TABLE IF NOT EXISTS {outbox} (
    Ordinal INTEGER PRIMARY KEY,
    ClaimId TEXT NOT NULL,
    Task TEXT NOT NULL,
    GroupNumber INTEGER NOT NULL,
    Id TEXT NOT NULL,
    Milliseconds INTEGER NOT NULL,
    Headers TEXT NOT NULL,
    Body BLOB
);
CREATE INDEX IF NOT EXISTS {outbox_index} ON {outbox} (ClaimId, Task, GroupNumber);

-- name: create_pauses
-- What operators have paused: one row per name, deleted when it is resumed. Times are milliseconds since 1970. Locks:
-- the database, as every write.
CREATE TABLE IF NOT EXISTS {pauses} (
    Name TEXT NOT NULL PRIMARY KEY,
    PausedAt INTEGER NOT NULL,
    PausedBy TEXT NOT NULL,
    Reason TEXT NOT NULL
);

-- name: create_failures
-- One row per queue: how many attempts on its batches failed in a row, since when, and the last error; and which code
-- and Spark last processed a message. Times are milliseconds since 1970. Locks: the database, as every write.
CREATE TABLE IF NOT EXISTS {failures} (
    Queue TEXT NOT NULL PRIMARY KEY,
    Failures INTEGER NOT NULL,
    Since INTEGER NOT NULL,
    LastError TEXT NOT NULL,
    Proof TEXT
);

-- name: create_slots
-- Slots in use: a row is a slot, which has room for one batch, with its owner, the end of its lease, when it was taken
-- and, once the owner takes no further batch, why. The process is known while it works on batches ('' before): others
-- on its machine then see when it is gone. Slot 0 of a queue belongs to no owner: a process that takes slots
-- locks that row first, so that only one counts them at a time.
-- Times are milliseconds since 1970. Locks: the database, as every write.
CREATE TABLE IF NOT EXISTS {slots} (
    Queue TEXT NOT NULL,
    Slot INTEGER NOT NULL,
    Owner TEXT NOT NULL,
    LeaseUntil INTEGER NOT NULL,
    TakenAt INTEGER NOT NULL,
    Ending TEXT,
    Process TEXT NOT NULL,
    PRIMARY KEY (Queue, Slot)
);

-- name: create_subscriptions
-- Which endpoint wants which events: one row per endpoint and topic. Locks: the database, as every write.
CREATE TABLE IF NOT EXISTS {subscriptions} (
    QueueAddress TEXT NOT NULL,
    Endpoint TEXT NOT NULL,
    Topic TEXT NOT NULL,
    PRIMARY KEY (Endpoint, Topic)
);
