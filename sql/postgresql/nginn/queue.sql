-- name: send
-- Inserts messages in subqueue I, due now (a day ago where they are urgent); one that expires carries its time in a
-- header. A message comes as a JSON text of its columns and its body; the id is not stored. Milliseconds to live, -1 =
-- for ever. The row is repeated for several messages. Locks: the new rows.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    CAST(m.columns AS json) ->> 'from',
    CAST(m.columns AS json) ->> 'to',
    'I',
    (now() AT TIME ZONE 'UTC'),
    NULL,
    0,
    CASE
        WHEN CAST(m.columns AS json) ->> 'high' = 'yes' THEN (now() AT TIME ZONE 'UTC') - INTERVAL '1 day'
        ELSE (now() AT TIME ZONE 'UTC')
    END,
    CAST(m.columns AS json) ->> 'correlation',
    CAST(m.columns AS json) ->> 'label',
    convert_from(m.body, 'UTF8'),
    (CAST(m.columns AS json) ->> 'headers')
    || CASE
        WHEN m.ttl = -1 THEN ''
        ELSE (CAST(m.columns AS json) ->> 'expires')
            || to_char(
                date_trunc(
                    'second',
                    (now() AT TIME ZONE 'UTC') + m.ttl * INTERVAL '1 millisecond'
                        + INTERVAL '999 milliseconds'
                ),
                'YYYY-MM-DD HH24\:MI\:SS'
            )
    END,
    CAST(m.columns AS json) ->> 'unique'
FROM (
VALUES
(CAST(:id AS uuid), CAST(:milliseconds AS bigint), CAST(:headers AS text), CAST(:body AS bytea))
) AS m (id, ttl, columns, body)

-- name: delay
-- Inserts messages that are due later: they wait in subqueue R until some reader's scheduler moves them. A message
-- comes as a JSON text of its columns and its body; the id is not stored. Milliseconds until they are due. The row is
-- repeated for several messages. Locks: the new rows.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    CAST(m.columns AS json) ->> 'from',
    CAST(m.columns AS json) ->> 'to',
    'R',
    (now() AT TIME ZONE 'UTC'),
    NULL,
    0,
    (now() AT TIME ZONE 'UTC') + m.ttl * INTERVAL '1 millisecond',
    CAST(m.columns AS json) ->> 'correlation',
    CAST(m.columns AS json) ->> 'label',
    convert_from(m.body, 'UTF8'),
    CAST(m.columns AS json) ->> 'headers',
    CAST(m.columns AS json) ->> 'unique'
FROM (
VALUES
(CAST(:id AS uuid), CAST(:milliseconds AS bigint), CAST(:headers AS text), CAST(:body AS bytea))
) AS m (id, ttl, columns, body)

-- name: deliver
-- Moves a group of staged results into their queue, in the order in which they were staged, see send. Locks: the new
-- rows.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    CAST(o.headers AS json) ->> 'from',
    CAST(o.headers AS json) ->> 'to',
    'I',
    (now() AT TIME ZONE 'UTC'),
    NULL,
    0,
    CASE
        WHEN CAST(o.headers AS json) ->> 'high' = 'yes' THEN (now() AT TIME ZONE 'UTC') - INTERVAL '1 day'
        ELSE (now() AT TIME ZONE 'UTC')
    END,
    CAST(o.headers AS json) ->> 'correlation',
    CAST(o.headers AS json) ->> 'label',
    convert_from(o.body, 'UTF8'),
    (CAST(o.headers AS json) ->> 'headers')
    || CASE
        WHEN o.milliseconds = -1 THEN ''
        ELSE (CAST(o.headers AS json) ->> 'expires')
            || to_char(
                date_trunc(
                    'second',
                    (now() AT TIME ZONE 'UTC') + o.milliseconds * INTERVAL '1 millisecond'
                        + INTERVAL '999 milliseconds'
                ),
                'YYYY-MM-DD HH24\:MI\:SS'
            )
    END,
    CAST(o.headers AS json) ->> 'unique'
FROM {outbox} AS o
WHERE o.claim_id = CAST(:claim_id AS uuid) AND o.task = :task AND o.group_number = :group_number
ORDER BY o.ordinal

-- name: deliver_delayed
-- Moves a group of staged results into their queue, in the order in which they were staged, see delay. Locks: the new
-- rows.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    CAST(o.headers AS json) ->> 'from',
    CAST(o.headers AS json) ->> 'to',
    'R',
    (now() AT TIME ZONE 'UTC'),
    NULL,
    0,
    (now() AT TIME ZONE 'UTC') + o.milliseconds * INTERVAL '1 millisecond',
    CAST(o.headers AS json) ->> 'correlation',
    CAST(o.headers AS json) ->> 'label',
    convert_from(o.body, 'UTF8'),
    CAST(o.headers AS json) ->> 'headers',
    CAST(o.headers AS json) ->> 'unique'
FROM {outbox} AS o
WHERE o.claim_id = CAST(:claim_id AS uuid) AND o.task = :task AND o.group_number = :group_number
ORDER BY o.ordinal

-- name: peek
-- How many messages are ready, counted up to a limit and without a lock. Locks: none.
SELECT COUNT(*) FROM (SELECT 1 AS one FROM {queue} WHERE subqueue = 'I' LIMIT :limit) AS waiting

-- name: message
-- One message, whatever its subqueue. Locks: none.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CASE WHEN isfinite(q.insert_time) THEN CAST(extract(EPOCH FROM q.insert_time) * 1000 AS bigint) END, q.msg_headers,
    q.msg_text
FROM {queue} AS q
WHERE q.id = :row_version

-- name: browse
-- Messages of a subqueue, after an id, that meet further conditions, left in the queue. A failed one has its error, and
-- the milliseconds since it failed. Of bodies the beginning, or all of it if it is asked for. Locks: none.
SELECT
    m.row_version, m.message_id, m.from_endpoint, m.to_endpoint, m.correlation_id, m.label, m.retry_count, m.sent,
    m.msg_headers, m.msg_text, (now() AT TIME ZONE 'UTC'), m.error_info,
    CASE
        WHEN isfinite(m.retry_time)
            THEN CAST(extract(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC') - m.retry_time) * 1000 AS bigint)
    END
FROM (
    SELECT
        q.id AS row_version, q.unique_id AS message_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label,
        q.retry_count,
        CASE WHEN isfinite(q.insert_time) THEN CAST(extract(EPOCH FROM q.insert_time) * 1000 AS bigint) END AS sent,
        q.msg_headers,
        CASE WHEN CAST(:with_body AS integer) = 1 THEN q.msg_text ELSE LEFT(q.msg_text, 400) END AS msg_text,
        q.error_info, q.retry_time
    FROM {queue} AS q
    WHERE q.subqueue = {subqueue}
) AS m
WHERE m.row_version > :after
ORDER BY m.{rank}
LIMIT :limit

-- name: status
-- A queue at a glance: ready messages, up to a limit; milliseconds since the oldest of them was due. Locks: none.
SELECT
    (SELECT COUNT(*) FROM (SELECT 1 AS one FROM {queue} WHERE subqueue = 'I' LIMIT :limit) AS waiting),
    (
        SELECT CAST(extract(EPOCH FROM ((clock_timestamp() AT TIME ZONE 'UTC')) - (MIN(retry_time))) * 1000 AS bigint)
        FROM {queue}
        WHERE subqueue = 'I' AND retry_time <= (clock_timestamp() AT TIME ZONE 'UTC') AND isfinite(retry_time)
    )

-- name: statistics
-- The messages by subqueue, and the average milliseconds between the time at which a message was due and the time at
-- which it was processed, over those that were due in the last minutes. The index on subqueue and retry_time serves all
-- of them. Messages in work count as R. Locks: none.
SELECT
    (SELECT COUNT(*) FROM {queue} WHERE subqueue = 'I'),
    (SELECT COUNT(*) FROM {queue} WHERE subqueue = 'R'),
    (SELECT COUNT(*) FROM {queue} WHERE subqueue = 'X'),
    (SELECT COUNT(*) FROM {queue} WHERE subqueue = 'F'),
    (
        SELECT AVG(extract(EPOCH FROM last_processed - retry_time) * 1000)
        FROM {queue}
        WHERE subqueue = 'X' AND isfinite(retry_time) AND isfinite(last_processed)
            AND retry_time > (now() AT TIME ZONE 'UTC') - CAST(:minutes AS integer) * INTERVAL '1 minute'
    )

-- name: count_delayed
-- How many messages wait for their time, up to a limit, and the milliseconds until the next is due; without those in
-- work. Locks: none.
SELECT
    (
        SELECT COUNT(*)
        FROM (
            SELECT 1 AS one FROM {queue} AS q
            WHERE q.subqueue = 'R'
                AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
            LIMIT :limit
        ) AS d
    ),
    (
        SELECT CAST(extract(
            EPOCH FROM MIN(GREATEST(q.retry_time, TIMESTAMP '1970-01-01')) - (clock_timestamp() AT TIME ZONE 'UTC')
        ) * 1000 AS bigint)
        FROM {queue} AS q
        WHERE q.subqueue = 'R' AND q.retry_time < 'infinity'
            AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
    )

-- name: move_due
-- The scheduler's pass: messages whose time has come are ready. Those of batches in work are left to their claims,
-- which may be taken over; other readers return them when the lease is over. Locks: the rows it changes; rows that
-- others have locked are skipped.
UPDATE {queue}
SET subqueue = 'I'
WHERE id = ANY (ARRAY(
    SELECT q.id
    FROM {queue} AS q
    WHERE q.subqueue = 'R' AND q.retry_time <= (clock_timestamp() AT TIME ZONE 'UTC')
        AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
    ORDER BY q.retry_time
    LIMIT :limit
    FOR UPDATE OF q SKIP LOCKED
))

-- name: receive
-- Receives: ready messages that no other process holds become processed ones, in a transaction that stays open while
-- they are worked on. Locks: the rows it changes; rows that others have locked are skipped.
WITH head AS MATERIALIZED (
    SELECT id FROM {queue} WHERE subqueue = 'I' ORDER BY {order} LIMIT :limit FOR UPDATE SKIP LOCKED
),
taken AS (
    UPDATE {queue} AS q
    SET subqueue = 'X', last_processed = (now() AT TIME ZONE 'UTC')
    FROM head
    WHERE q.id = head.id
    RETURNING
        q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count, q.insert_time,
        q.msg_headers, q.msg_text, q.retry_time
)
SELECT
    id, unique_id, from_endpoint, to_endpoint, correlation_id, label, retry_count,
    CASE WHEN isfinite(insert_time) THEN CAST(extract(EPOCH FROM insert_time) * 1000 AS bigint) END, msg_headers,
    msg_text, now() AT TIME ZONE 'UTC', row_number() OVER (ORDER BY {order})
FROM taken
ORDER BY {order}

-- name: row_take
-- Takes one message, unless another process has taken it. Locks: the row.
UPDATE {queue}
SET subqueue = 'X', last_processed = (now() AT TIME ZONE 'UTC')
WHERE id = :row_version AND subqueue = 'I'

-- name: row_refuse
-- A message that cannot be read, found during its receive: it goes from processed to failed before any process sees it.
-- Locks: the row.
UPDATE {queue}
SET subqueue = 'F', retry_count = retry_count + 1, retry_time = (now() AT TIME ZONE 'UTC'), error_info = :error
WHERE id = :row_version

-- name: row_postpone
-- A message that is being received has to wait for those before it. Locks: the row.
UPDATE {queue}
SET subqueue = 'R', last_processed = (now() AT TIME ZONE 'UTC'),
    retry_time = (now() AT TIME ZONE 'UTC') + CAST(:delay AS bigint) * INTERVAL '1 millisecond'
WHERE id = :row_version

-- name: row_retry
-- A message failed after its receive was rolled back, and is tried again later; not if another process has taken it
-- since. Locks: the row.
UPDATE {queue}
SET subqueue = 'R', last_processed = (now() AT TIME ZONE 'UTC'), retry_count = retry_count + 1,
    retry_time = (now() AT TIME ZONE 'UTC') + CAST(:delay AS bigint) * INTERVAL '1 millisecond', error_info = :error
WHERE id = :row_version AND subqueue = 'I'

-- name: row_fail
-- A message failed for good after its receive was rolled back; not if another process has taken it since. Locks: the
-- row.
UPDATE {queue}
SET subqueue = 'F', last_processed = (now() AT TIME ZONE 'UTC'), retry_count = retry_count + 1,
    retry_time = (now() AT TIME ZONE 'UTC'), error_info = :error
WHERE id = :row_version AND subqueue = 'I'

-- name: row_release
-- Makes a waiting message ready: its turn in its sequence has come. Locks: the row.
UPDATE {queue} SET subqueue = 'I' WHERE id = :row_version AND subqueue = 'R'

-- name: failed_list
-- Failed messages after an id, oldest first. Locks: none.
SELECT
    q.id, q.unique_id, q.label, q.retry_count, q.error_info,
    CASE
        WHEN isfinite(q.retry_time)
            THEN CAST(extract(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC') - q.retry_time) * 1000 AS bigint)
        ELSE 0
    END
FROM {queue} AS q
WHERE q.subqueue = 'F' AND q.id > :after
ORDER BY q.id
LIMIT :limit

-- name: failed_retry
-- Makes all failed messages ready again, as new. Their retry time stays, as in the reference. Locks: the rows it
-- changes.
UPDATE {queue} SET subqueue = 'I', retry_count = 0, error_info = NULL WHERE subqueue = 'F'

-- name: failed_retry_one
-- Makes one failed message ready again, as new. Locks: the row.
UPDATE {queue} SET subqueue = 'I', retry_count = 0, error_info = NULL WHERE id = :row_version AND subqueue = 'F'

-- name: failed_drop_one
-- Deletes one failed message for good. Locks: the row.
DELETE FROM {queue} WHERE id = :row_version AND subqueue = 'F'

-- name: purge_due
-- Retention: deletes processed messages that were due long enough ago, as the reference measures it. Locks: the rows it
-- deletes; rows that others have locked are skipped.
DELETE FROM {queue}
WHERE id = ANY (ARRAY(
    SELECT id FROM {queue}
    WHERE subqueue = 'X'
        AND retry_time <= (now() AT TIME ZONE 'UTC') + (-1000 * CAST(:seconds AS bigint)) * INTERVAL '1 millisecond'
    LIMIT :limit FOR UPDATE SKIP LOCKED
))

-- name: purge_processed
-- Retention: deletes processed messages that were processed long enough ago. Locks: the rows it deletes; rows that
-- others have locked are skipped.
DELETE FROM {queue}
WHERE id = ANY (ARRAY(
    SELECT id FROM {queue}
    WHERE subqueue = 'X'
        AND last_processed <= (now() AT TIME ZONE 'UTC') + (-1000 * CAST(:seconds AS bigint)) * INTERVAL '1 millisecond'
    LIMIT :limit FOR UPDATE SKIP LOCKED
))

-- name: discover
-- Tables of a schema that have the shape of an NGinn queue. Locks: none.
SELECT c.relname
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relkind IN ('r', 'p') AND (
    SELECT count(*) FROM pg_attribute AS a
    WHERE a.attrelid = c.oid AND NOT a.attisdropped
        AND a.attname IN ('from_endpoint', 'to_endpoint', 'subqueue', 'retry_time', 'msg_text', 'msg_headers')
) = 6
ORDER BY c.relname
