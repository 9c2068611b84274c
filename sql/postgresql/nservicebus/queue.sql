-- name: send
-- Inserts messages; the row is repeated for several. Milliseconds to live, -1 = for ever. now() is the transaction's
-- start, as the reference has it; seq follows the order of the rows. Locks: the new rows.
INSERT INTO {queue} (id, expires, headers, body)
SELECT m.id, (now() AT TIME ZONE 'UTC') + NULLIF(m.ttl, -1) * INTERVAL '1 millisecond', m.headers, m.body
FROM (
VALUES
(CAST(:id AS uuid), CAST(:milliseconds AS bigint), CAST(:headers AS text), CAST(:body AS bytea))
) AS m (id, ttl, headers, body)

-- name: copy
-- Inserts messages that never expire, by COPY: less than half the processor time of send. Locks: the new rows.
COPY {queue} (id, headers, body) FROM STDIN WITH (FORMAT BINARY)

-- name: delay
-- Inserts delayed messages; the row is repeated for several. Milliseconds until they are due, negative for the past.
-- now() is an instant here, not a wall clock, so the row is due at the right time in every session time zone. Locks:
-- the new rows.
INSERT INTO {delayed} (id, due, headers, body)
SELECT m.id, now() + m.delay * INTERVAL '1 millisecond', m.headers, m.body
FROM (
VALUES
(CAST(:id AS uuid), CAST(:milliseconds AS bigint), CAST(:headers AS text), CAST(:body AS bytea))
) AS m (id, delay, headers, body)

-- name: deliver
-- Moves a group of staged results into their queue, in the order in which they were staged. Locks: the new rows.
INSERT INTO {queue} (id, expires, headers, body)
SELECT id, (now() AT TIME ZONE 'UTC') + NULLIF(milliseconds, -1) * INTERVAL '1 millisecond', headers, body
FROM {outbox}
WHERE claim_id = CAST(:claim_id AS uuid) AND task = :task AND group_number = CAST(:group_number AS integer)
ORDER BY ordinal

-- name: deliver_delayed
-- Moves a group of staged results into a delayed table; the delay counts from now. Locks: the new rows.
INSERT INTO {delayed} (id, due, headers, body)
SELECT id, now() + milliseconds * INTERVAL '1 millisecond', headers, body
FROM {outbox}
WHERE claim_id = CAST(:claim_id AS uuid) AND task = :task AND group_number = CAST(:group_number AS integer)
ORDER BY ordinal

-- name: peek
-- How many messages wait, counted up to a limit and without a lock. A row that another transaction is deleting or has
-- locked does not count: its xmax is a transaction in progress. (FOR UPDATE SKIP LOCKED would tell the same, but its
-- locks make receivers skip those rows.) xmax has 32 bits and pg_xact_status takes 64, so the epoch of the current
-- snapshot is put in front of it; an xmax beyond the snapshot belongs to a transaction that began since. A deleter that
-- rolled back leaves its xmax behind: "aborted" counts as waiting. The order makes the planner walk the index on seq,
-- which skips dead rows; a scan of the heap would not. Locks: none.
WITH horizon AS MATERIALIZED (
    SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint) AS next_xid
)
SELECT count(*)
FROM (
    SELECT 1
    FROM {queue} AS q, horizon
    WHERE CASE
        WHEN q.xmax = '0' THEN TRUE
        WHEN CAST(CAST(q.xmax AS text) AS bigint) >= horizon.next_xid % 4294967296 THEN
            horizon.next_xid >= 4294967296
            AND pg_xact_status(CAST(CAST(
                horizon.next_xid - horizon.next_xid % 4294967296 - 4294967296 + CAST(CAST(q.xmax AS text) AS bigint)
                AS text) AS xid8)) IS DISTINCT FROM 'in progress'
        ELSE pg_xact_status(CAST(CAST(
            horizon.next_xid - horizon.next_xid % 4294967296 + CAST(CAST(q.xmax AS text) AS bigint)
            AS text) AS xid8)) IS DISTINCT FROM 'in progress'
    END
    ORDER BY q.seq
    LIMIT :limit
) AS waiting

-- name: browse
-- Messages after a row version that meet further conditions, left in the queue; bodies if they are asked for. A time
-- that no Python knows is none. Locks: none.
SELECT
    CAST(m.id AS text), m.row_version, m.expired, m.headers, m.body, NULL AS correlation_id, NULL AS reply_to_address,
    m.expires, m.body_size
FROM (
    SELECT
        q.id, CAST(q.id AS text) AS id_text, q.seq AS row_version,
        CASE WHEN q.expires <= (now() AT TIME ZONE 'UTC') THEN 1 ELSE 0 END AS expired,
        CASE
            WHEN q.expires >= timestamp '0001-01-01' AND q.expires < timestamp '10000-01-01'
                THEN CAST(floor(extract(EPOCH FROM q.expires) * 1000) AS bigint)
        END AS expires,
        q.headers, CASE WHEN CAST(:with_body AS integer) = 1 THEN q.body END AS body,
        COALESCE(octet_length(q.body), 0) AS body_size
    FROM {queue} AS q
) AS m
WHERE m.row_version > :after
ORDER BY m.row_version
LIMIT :limit

-- name: status
-- A queue at a glance: waiting up to a limit, expired up to a limit, the oldest message's headers, database time.
-- Locks: none.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM {queue} ORDER BY seq LIMIT CAST(:limit AS bigint)) AS w),
    (SELECT count(*) FROM (SELECT 1 FROM {queue}
        WHERE expires < (clock_timestamp() AT TIME ZONE 'UTC') LIMIT CAST(:limit AS bigint)) AS e),
    (SELECT headers FROM {queue} ORDER BY seq LIMIT 1),
    CAST(extract(EPOCH FROM clock_timestamp()) * 1000 AS bigint)

-- name: issued
-- The last number that the queue gave to a message, for rates; null where the login may not read the sequence.
-- Locks: none.
SELECT CASE WHEN has_sequence_privilege(s.oid, 'USAGE, SELECT') THEN COALESCE(pg_sequence_last_value(s.oid), 0) END
FROM (SELECT CAST(pg_get_serial_sequence({queue_text}, 'seq') AS regclass) AS oid) AS s

-- name: receive
-- Deletes the oldest messages that no other process is receiving, and returns them in order, with 1 for those that have
-- expired. The database compares the times: it also holds such as no program knows, infinity and the year 20000. Rows
-- are found by ctid: queue rows are never updated, so a locked row stays where it is. A join or IN over seq would let
-- the planner run the subquery more than once, and return more rows than asked for. Locks: the rows it deletes; rows
-- that others have locked are skipped.
WITH taken AS (
    DELETE FROM {queue}
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {queue} ORDER BY seq LIMIT :limit FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, seq, expires, headers, body
)
SELECT
    CAST(id AS text), seq, CASE WHEN expires <= (now() AT TIME ZONE 'UTC') THEN 1 ELSE 0 END, headers, body,
    NULL AS correlation_id, NULL AS reply_to_address
FROM taken
ORDER BY seq

-- name: purge
-- Deletes a batch of expired messages, except for rows that a receiver holds. Locks: the rows it deletes; rows that
-- others have locked are skipped.
DELETE FROM {queue}
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {queue}
    WHERE expires < (now() AT TIME ZONE 'UTC') ORDER BY expires LIMIT :limit FOR UPDATE SKIP LOCKED
))

-- name: dead_letter
-- A row whose headers cannot be read goes to the error queue unchanged, with its own id unless that exists there
-- already (id is a primary key here, and a person may have put the same row back once before). Locks: the new row.
INSERT INTO {queue} (id, expires, headers, body)
SELECT
    CASE WHEN EXISTS (SELECT 1 FROM {queue} WHERE id = CAST(:id AS uuid))
        THEN gen_random_uuid() ELSE CAST(:id AS uuid) END,
    NULL,
    CAST(:headers AS text),
    CASE WHEN CAST(:body_is_null AS integer) = 1 THEN NULL ELSE CAST(:body AS bytea) END

-- name: count_delayed
-- How many messages wait for their time, counted up to a limit, and the milliseconds until the next is due; infinite
-- moments cannot be subtracted. Locks: none.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM {delayed} LIMIT :limit) AS d),
    (
        SELECT CAST(ceil(extract(
            EPOCH FROM min(GREATEST(due, TIMESTAMPTZ '1970-01-01 00\:00\:00+00')) - clock_timestamp()
        ) * 1000) AS bigint)
        FROM {delayed}
        WHERE due < 'infinity'
    )

-- name: find_due
-- The head of the delayed messages that are due, with the headers of those that may be for another queue: all except
-- those that hold the text, the forwarding header exactly as this transport writes it for the queue itself. Headers are
-- read by ctid once the head is known (see move_due), so that no sort has to carry them. Locks: the rows it finds; rows
-- that others have locked are skipped.
SELECT CAST(d.id AS text), CASE WHEN strpos(d.headers, CAST(:text AS text)) = 0 THEN d.headers END
FROM {delayed} AS d
WHERE d.ctid = ANY (ARRAY(
    SELECT ctid FROM {delayed} WHERE due <= now() ORDER BY due LIMIT :limit FOR UPDATE SKIP LOCKED
))
ORDER BY d.due, d.id

-- name: move_due
-- Moves delayed messages that are due into the input queue, oldest due first. The delayed row's id is kept, as the
-- reference keeps it. The head is found by due alone, which the index gives without a sort: a large send makes all its
-- rows due at the same instant, and each batch would sort every one of them. Locks: the rows it moves; rows that others
-- have locked are skipped.
WITH due AS (
    DELETE FROM {delayed}
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {delayed} WHERE due <= now() ORDER BY due LIMIT :limit FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, headers, body, due
)
INSERT INTO {queue} (id, expires, headers, body)
SELECT id, NULL, headers, body FROM due ORDER BY due, id

-- name: take_delayed
-- Takes delayed messages out of their table, by the ids that find_due gave: they go straight to another queue. The
-- deleted rows are returned, so that a message which another process moved meanwhile is not sent twice. The row is
-- repeated for several. Locks: the rows it deletes.
DELETE FROM {delayed}
WHERE id IN (
VALUES
(CAST(:key AS uuid))
)
RETURNING CAST(id AS text), CAST(id AS text), headers, body

-- name: discover
-- Tables of a schema that have a queue's shape. Locks: none.
SELECT t.relname
FROM pg_class AS t
JOIN pg_namespace AS n ON n.oid = t.relnamespace
WHERE t.relkind IN ('r', 'p') AND n.nspname = :schema
    AND (
        SELECT count(*) FROM pg_attribute AS a
        WHERE a.attrelid = t.oid AND NOT a.attisdropped
            AND a.attname IN ('id', 'expires', 'headers', 'body', 'seq')
    ) = 5
    AND NOT EXISTS (
        SELECT 1 FROM pg_attribute AS a WHERE a.attrelid = t.oid AND a.attname = 'claim_id' AND NOT a.attisdropped
    )
ORDER BY t.relname
