-- name: create_queue
-- A queue. As the reference creates it, except for two things that peers do not notice: seq is a bigint (theirs stops
-- for good after 2,147,483,647 messages), and expires has an index, so that a purge does not read the whole table.
-- Locks: the new table.
CREATE TABLE IF NOT EXISTS {queue} (
    id uuid NOT NULL PRIMARY KEY,
    expires timestamp,
    headers text NOT NULL,
    body bytea,
    seq bigserial NOT NULL UNIQUE
);
CREATE INDEX IF NOT EXISTS {expires_index} ON {queue} (expires) WHERE expires IS NOT NULL;

-- name: create_delayed
-- Messages that wait for their time; a mover brings them to the queue when they are due. Locks: the new table.
CREATE TABLE IF NOT EXISTS {delayed} (
    id uuid NOT NULL PRIMARY KEY DEFAULT gen_random_uuid(),
    headers text NOT NULL,
    body bytea,
    due timestamptz NOT NULL
) WITH (fillfactor = 100);
CREATE INDEX IF NOT EXISTS {due_index} ON {delayed} (due);

-- name: create_claimed
-- The messages of batches in work, moved out of the queue until their claim is completed. Locks: the new table.
CREATE TABLE IF NOT EXISTS {claimed} (
    claim_id uuid NOT NULL,
    id uuid NOT NULL,
    expires timestamp,
    headers text NOT NULL,
    body bytea,
    seq bigint NOT NULL,
    PRIMARY KEY (claim_id, seq)
);

-- name: add_body_string
-- The body as text for people who read the table; computed by the database, never written. Locks: the table,
-- exclusively.
ALTER TABLE {queue} ADD COLUMN IF NOT EXISTS bodystring text GENERATED ALWAYS AS (encode(body, 'escape')) STORED;

-- name: body_string_exists
-- One row when the queue already shows its bodies as text. Locks: none.
SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass({queue_text}) AND attname = 'bodystring' AND NOT attisdropped

-- name: grant
-- The rights that a run-time account needs on a queue: UPDATE too, because locking a row requires it. Locks: the
-- catalog only.
GRANT USAGE ON SCHEMA {schema} TO {account};
GRANT SELECT, INSERT, UPDATE, DELETE ON {queue} TO {account};
GRANT USAGE ON SEQUENCE {row_version_sequence} TO {account};
