-- name: indexes
-- Indexes of a queue table by their first key column, whatever their names. Columns: name, first key column (none for
-- an expression), clustered (never), filtered, usable (valid, and a B-tree: no other kind gives rows in order). Locks:
-- none.
SELECT
    n.relname,
    a.attname,
    0,
    CASE WHEN i.indpred IS NOT NULL THEN 1 ELSE 0 END,
    CASE WHEN i.indisvalid AND i.indisready AND m.amname = 'btree' THEN 1 ELSE 0 END
FROM pg_index AS i
JOIN pg_class AS n ON n.oid = i.indexrelid
JOIN pg_am AS m ON m.oid = n.relam
LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attnum > 0
WHERE i.indrelid = to_regclass({queue_text})

-- name: size
-- Pages of a table and estimates of its rows. Large values are in another relation: a row needs one page at most.
-- Columns: pages, live rows (NULL: unknown), dead rows, vacuumed lately. The count of live rows starts at zero after a
-- crash of the server, and reltuples is as old as the last vacuum: its rows, less those that died since, count if they
-- are more. A busy queue has many dead rows until the next autovacuum: only those that stay are worth a finding. Locks:
-- none.
SELECT
    pg_relation_size(t.oid) / CAST(current_setting('block_size') AS bigint),
    CASE
        WHEN t.relpages = 0 AND coalesce(s.n_tup_ins, 0) = 0 THEN NULL
        ELSE CAST(greatest(s.n_live_tup, t.reltuples - s.n_dead_tup, 0) AS bigint)
    END,
    coalesce(s.n_dead_tup, 0),
    CASE WHEN greatest(s.last_vacuum, s.last_autovacuum) > now() - interval '10 minutes' THEN 1 ELSE 0 END
FROM pg_class AS t
LEFT JOIN pg_stat_all_tables AS s ON s.relid = t.oid
WHERE t.oid = to_regclass({queue_text})

-- name: sequence
-- The sequence of seq: schema, name, largest value, last value. USAGE on the sequence is enough to see the last value;
-- without it the view shows NULL, as it does for a sequence that was never used, which is 0 here. Locks: none.
SELECT
    q.schemaname,
    q.sequencename,
    q.max_value,
    CASE WHEN has_sequence_privilege(c.oid, 'SELECT, USAGE') THEN coalesce(q.last_value, 0) END
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_sequences AS q ON q.schemaname = n.nspname AND q.sequencename = c.relname
WHERE c.oid = CAST(pg_get_serial_sequence({queue_text}, 'seq') AS regclass)

-- name: fix_row_version_index
-- A constraint rather than a bare index: claims rely on seq being unique. Locks: the table, exclusively.
ALTER TABLE {queue} ADD CONSTRAINT {index} UNIQUE (seq);

-- name: fix_expires_index
-- As the installer creates it. CREATE INDEX CONCURRENTLY would not block senders, but cannot run in a transaction.
-- Locks: the table against writes.
CREATE INDEX {index} ON {queue} (expires) WHERE expires IS NOT NULL;

-- name: fix_due_index
-- As the installer creates it. Locks: the table against writes.
CREATE INDEX {index} ON {delayed} (due);

-- name: fix_subqueue_index
-- The index that finds the messages of an NGinn queue: by subqueue, in the order in which they are due. Locks: the
-- table against writes.
CREATE INDEX {index} ON {queue} (subqueue, retry_time, id);

-- name: fix_id_type
-- Rewrites the table. Locks: the table, exclusively.
ALTER TABLE {queue} ALTER COLUMN id TYPE uuid USING CAST(CAST(id AS text) AS uuid);

-- name: fix_expires_type
-- The column holds UTC wall-clock time without a zone. The session's zone is set first: it decides how a value without
-- one is read. Locks: the table, exclusively.
SET TIME ZONE 'UTC';
ALTER TABLE {queue} ALTER COLUMN expires TYPE timestamp USING CAST(expires AS timestamptz) AT TIME ZONE 'UTC';

-- name: fix_headers_type
-- Text keeps the JSON as the sender wrote it. Locks: the table, exclusively.
ALTER TABLE {queue} ALTER COLUMN headers TYPE text USING CAST(headers AS text);

-- name: fix_body_type
-- Text becomes its UTF-8 bytes; a cast to bytea would read backslashes as escapes. Rewrites the table. Locks: the
-- table, exclusively.
ALTER TABLE {queue} ALTER COLUMN body TYPE bytea USING convert_to(CAST(body AS text), 'UTF8');

-- name: fix_row_version_type
-- Rewrites the table. Locks: the table, exclusively.
ALTER TABLE {queue} ALTER COLUMN seq TYPE bigint USING CAST(seq AS bigint);

-- name: fix_sequence_type
-- Altering the column rewrites the table: run it while few messages wait. Peers do not notice. Locks: the table,
-- exclusively.
ALTER TABLE {queue} ALTER COLUMN seq TYPE bigint;
ALTER SEQUENCE {sequence} AS bigint NO MAXVALUE;

-- name: fix_dead_rows
-- Runs beside senders and receivers; also cuts off the empty pages at the end of the table. Locks: the table against
-- schema changes.
VACUUM (ANALYZE) {queue};

-- name: fix_page_bloat
-- Writes the table again without its empty pages. Locks: the table, exclusively.
VACUUM (FULL, ANALYZE) {queue};
