-- name: lock
-- One installer at a time per table. The key is the one that .NET installers use. Locks: the advisory lock, until the
-- transaction ends.
SELECT 0 FROM pg_advisory_xact_lock(CAST(:lock AS bigint))

-- name: exists
-- One row when the table exists and this account can see it. Locks: none.
SELECT 1 WHERE to_regclass({queue_text}) IS NOT NULL

-- name: columns
-- Columns of a queue table and their types, for the audit. A varchar shows its limit: without one it is as good as
-- text. Locks: none.
SELECT a.attname, format_type(a.atttypid, CASE WHEN a.atttypid = CAST('varchar' AS regtype) THEN a.atttypmod END)
FROM pg_attribute AS a
WHERE a.attrelid = to_regclass({queue_text}) AND a.attnum > 0 AND NOT a.attisdropped

-- name: create_claims
-- One row per claim: its owner, its generation, the end of its lease, and how often its messages have failed. Owner is
-- NULL once the claim was given back. Locks: the new table.
CREATE TABLE IF NOT EXISTS {claims} (
    claim_id uuid NOT NULL PRIMARY KEY,
    queue text NOT NULL,
    owner text,
    generation integer NOT NULL,
    messages integer NOT NULL,
    bytes bigint NOT NULL,
    first_row_version bigint NOT NULL,
    claimed_at timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    begun boolean NOT NULL DEFAULT false,
    isolated boolean NOT NULL DEFAULT false,
    failures integer NOT NULL DEFAULT 0,
    last_error text
);
CREATE INDEX IF NOT EXISTS {claims_index} ON {claims} (queue, first_row_version);

-- name: create_outbox
-- Results that Spark executors staged, until their claim is completed: one row per message, numbered in the order of
-- staging, and one row with the manifest of each job. Not logged: losing it in a crash only means that the claim is
-- processed again. An identity column needs no right on a sequence. Locks: the new table.
CREATE UNLOGGED TABLE IF NOT EXISTS {outbox} (
    claim_id uuid NOT NULL,
    task text NOT NULL,
    group_number integer NOT NULL,
    ordinal bigint GENERATED ALWAYS AS IDENTITY,
    id uuid NOT NULL,
    milliseconds bigint NOT NULL,
    headers text NOT NULL,
    body bytea,
    PRIMARY KEY (claim_id, task, group_number, ordinal)
);

-- name: create_pauses
-- What operators have paused: one row per name, deleted when it is resumed. Locks: the new table.
CREATE TABLE IF NOT EXISTS {pauses} (
    name text NOT NULL PRIMARY KEY,
    paused_at timestamptz NOT NULL,
    paused_by text NOT NULL,
    reason text NOT NULL
);

-- name: create_failures
-- One row per queue: how many attempts on its batches failed in a row, since when, and the last error; and which code
-- and Spark last processed a message. Locks: the new table.
CREATE TABLE IF NOT EXISTS {failures} (
    queue text NOT NULL PRIMARY KEY,
    failures integer NOT NULL,
    since timestamptz NOT NULL,
    last_error text NOT NULL,
    proof text
);

-- name: create_slots
-- Slots in use: a row is a slot, which has room for one batch, with its owner, the end of its lease, when it was taken
-- and, once the owner takes no further batch, why. The process is known while it works on batches ('' before): others
-- on its machine then see when it is gone. Slot 0 of a queue belongs to no owner: a process that takes slots
-- locks that row first, so that only one counts them at a time.
-- Locks: the new table.
CREATE TABLE IF NOT EXISTS {slots} (
    queue text NOT NULL,
    slot integer NOT NULL,
    owner text NOT NULL,
    lease_until timestamptz NOT NULL,
    taken_at timestamptz NOT NULL,
    ending text,
    process text NOT NULL,
    PRIMARY KEY (queue, slot)
);

-- name: create_subscriptions
-- Which endpoint wants which events, in the shape that all NServiceBus endpoints share: one row per endpoint and topic.
-- Locks: the new table.
CREATE TABLE IF NOT EXISTS {subscriptions} (
    queueaddress varchar(200) NOT NULL,
    endpoint varchar(200) NOT NULL,
    topic varchar(200) NOT NULL,
    PRIMARY KEY (endpoint, topic)
);

-- name: grant
-- The rights that a run-time account needs on a table that belongs to a queue or to the transport. Locks: the catalog
-- only.
GRANT USAGE ON SCHEMA {schema} TO {account};
GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {account};
