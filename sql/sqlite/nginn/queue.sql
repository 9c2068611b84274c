-- name: send
-- Inserts one message in subqueue I, due now (a day ago where it is urgent); one that expires carries its time in a
-- header. A message comes as a JSON text of its columns and its body; the id is not stored. Milliseconds to live, -1 =
-- for ever. The driver runs it once per row. Locks: the database, as every write.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    json_extract(m.column3, '$.from'),
    json_extract(m.column3, '$.to'),
    'I',
    strftime('%Y-%m-%d %H:%M:%f', 'now'),
    NULL,
    0,
    CASE
        WHEN json_extract(m.column3, '$.high') = 'yes' THEN strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day')
        ELSE strftime('%Y-%m-%d %H:%M:%f', 'now')
    END,
    json_extract(m.column3, '$.correlation'),
    json_extract(m.column3, '$.label'),
    CAST(m.column4 AS TEXT),
    json_extract(m.column3, '$.headers')
    || CASE
        WHEN m.column2 = -1 THEN ''
        ELSE json_extract(m.column3, '$.expires')
            || strftime('%Y-%m-%d %H:%M:%S', 'now', printf('%+.3f seconds', m.column2 / 1000.0 + 0.999))
    END,
    json_extract(m.column3, '$.unique')
FROM (VALUES (:id, :milliseconds, :headers, :body)) AS m

-- name: delay
-- Inserts one message that is due later: it waits in subqueue R until some reader's scheduler moves it. A message comes
-- as a JSON text of its columns and its body; the id is not stored. Milliseconds until it is due. The driver runs it
-- once per row. Locks: the database, as every write.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    json_extract(m.column3, '$.from'),
    json_extract(m.column3, '$.to'),
    'R',
    strftime('%Y-%m-%d %H:%M:%f', 'now'),
    NULL,
    0,
    strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', m.column2 / 1000.0)),
    json_extract(m.column3, '$.correlation'),
    json_extract(m.column3, '$.label'),
    CAST(m.column4 AS TEXT),
    json_extract(m.column3, '$.headers'),
    json_extract(m.column3, '$.unique')
FROM (VALUES (:id, :milliseconds, :headers, :body)) AS m

-- name: deliver
-- Moves a group of staged results into their queue, in the order in which they were staged, see send. Locks: the
-- database, as every write.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    json_extract(o.Headers, '$.from'),
    json_extract(o.Headers, '$.to'),
    'I',
    strftime('%Y-%m-%d %H:%M:%f', 'now'),
    NULL,
    0,
    CASE
        WHEN json_extract(o.Headers, '$.high') = 'yes' THEN strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day')
        ELSE strftime('%Y-%m-%d %H:%M:%f', 'now')
    END,
    json_extract(o.Headers, '$.correlation'),
    json_extract(o.Headers, '$.label'),
    CAST(o.Body AS TEXT),
    json_extract(o.Headers, '$.headers')
    || CASE
        WHEN o.Milliseconds = -1 THEN ''
        ELSE json_extract(o.Headers, '$.expires')
            || strftime('%Y-%m-%d %H:%M:%S', 'now', printf('%+.3f seconds', o.Milliseconds / 1000.0 + 0.999))
    END,
    json_extract(o.Headers, '$.unique')
FROM {outbox} AS o
WHERE o.ClaimId = :claim_id AND o.Task = :task AND o.GroupNumber = :group_number
ORDER BY o.Ordinal

-- name: deliver_delayed
-- Moves a group of staged results into their queue, in the order in which they were staged, see delay. Locks: the
-- database, as every write.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    json_extract(o.Headers, '$.from'),
    json_extract(o.Headers, '$.to'),
    'R',
    strftime('%Y-%m-%d %H:%M:%f', 'now'),
    NULL,
    0,
    strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', o.Milliseconds / 1000.0)),
    json_extract(o.Headers, '$.correlation'),
    json_extract(o.Headers, '$.label'),
    CAST(o.Body AS TEXT),
    json_extract(o.Headers, '$.headers'),
    json_extract(o.Headers, '$.unique')
FROM {outbox} AS o
WHERE o.ClaimId = :claim_id AND o.Task = :task AND o.GroupNumber = :group_number
ORDER BY o.Ordinal

-- name: peek
-- How many messages are ready, counted up to a limit and without a lock. Locks: none.
SELECT COUNT(*) FROM (SELECT 1 AS one FROM {queue} WHERE subqueue = 'I' LIMIT :limit) AS waiting

-- name: message
-- One message, whatever its subqueue. Locks: none.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CAST(round((julianday(q.insert_time) - 2440587.5) * 86400000) AS INTEGER), q.msg_headers, q.msg_text
FROM {queue} AS q
WHERE q.id = :row_version

-- name: browse
-- Messages of a subqueue, after an id, that meet further conditions, left in the queue. A failed one has its error, and
-- the milliseconds since it failed. Of bodies the beginning, or all of it if it is asked for. Locks: none.
SELECT
    m.row_version, m.message_id, m.from_endpoint, m.to_endpoint, m.correlation_id, m.label, m.retry_count, m.sent,
    m.msg_headers, m.msg_text, strftime('%Y-%m-%d %H:%M:%f', 'now'), m.error_info,
    CAST(round((julianday(strftime('%Y-%m-%d %H:%M:%f', 'now')) - julianday(m.retry_time)) * 86400000) AS INTEGER)
FROM (
    SELECT
        q.id AS row_version, q.unique_id AS message_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label,
        q.retry_count,
        CAST(round((julianday(q.insert_time) - 2440587.5) * 86400000) AS INTEGER) AS sent,
        q.msg_headers, CASE WHEN :with_body = 1 THEN q.msg_text ELSE substr(q.msg_text, 1, 400) END AS msg_text,
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
        SELECT CAST(
            round((julianday(strftime('%Y-%m-%d %H:%M:%f', 'now')) - julianday(MIN(retry_time))) * 86400000) AS INTEGER
        )
        FROM {queue}
        WHERE subqueue = 'I' AND retry_time <= strftime('%Y-%m-%d %H:%M:%f', 'now')
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
        SELECT AVG((julianday(last_processed) - julianday(retry_time)) * 86400000)
        FROM {queue}
        WHERE subqueue = 'X' AND retry_time > strftime('%Y-%m-%d %H:%M:%f', 'now', printf('-%d minutes', :minutes))
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
        SELECT CAST(
            round((julianday(MIN(q.retry_time)) - julianday(strftime('%Y-%m-%d %H:%M:%f', 'now'))) * 86400000)
            AS INTEGER
        )
        FROM {queue} AS q
        WHERE q.subqueue = 'R'
            AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
    )

-- name: move_due
-- The scheduler's pass: messages whose time has come are ready. Those of batches in work are left to their claims,
-- which may be taken over; other readers return them when the lease is over. Locks: the database, as every write.
UPDATE {queue}
SET subqueue = 'I'
WHERE id IN (
    SELECT q.id
    FROM {queue} AS q
    WHERE q.subqueue = 'R' AND q.retry_time <= strftime('%Y-%m-%d %H:%M:%f', 'now')
        AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
    ORDER BY q.retry_time
    LIMIT :limit
)

-- name: receive
-- Receives: ready messages become processed ones, in a transaction that stays open while they are worked on. The rows
-- come back in no order, each with the time at which it was due. Locks: the database, as every write.
UPDATE {queue}
SET subqueue = 'X', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE id IN (SELECT id FROM {queue} WHERE subqueue = 'I' ORDER BY {order} LIMIT :limit)
RETURNING
    id, unique_id, from_endpoint, to_endpoint, correlation_id, label, retry_count,
    CAST(round((julianday(insert_time) - 2440587.5) * 86400000) AS INTEGER), msg_headers, msg_text,
    strftime('%Y-%m-%d %H:%M:%f', 'now'), retry_time

-- name: row_take
-- Takes one message, unless another process has taken it. Locks: the database, as every write.
UPDATE {queue}
SET subqueue = 'X', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE id = :row_version AND subqueue = 'I'

-- name: row_refuse
-- A message that cannot be read, found during its receive: it goes from processed to failed before any process sees it.
-- Locks: the database, as every write.
UPDATE {queue}
SET subqueue = 'F', retry_count = retry_count + 1, retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now'),
    error_info = :error
WHERE id = :row_version

-- name: row_postpone
-- A message that is being received has to wait for those before it. Locks: the database, as every write.
UPDATE {queue}
SET subqueue = 'R', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'),
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', :delay / 1000.0))
WHERE id = :row_version

-- name: row_retry
-- A message failed after its receive was rolled back, and is tried again later; not if another process has taken it
-- since. Locks: the database, as every write.
UPDATE {queue}
SET subqueue = 'R', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'), retry_count = retry_count + 1,
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', :delay / 1000.0)), error_info = :error
WHERE id = :row_version AND subqueue = 'I'

-- name: row_fail
-- A message failed for good after its receive was rolled back; not if another process has taken it since. Locks: the
-- database, as every write.
UPDATE {queue}
SET subqueue = 'F', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'), retry_count = retry_count + 1,
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now'), error_info = :error
WHERE id = :row_version AND subqueue = 'I'

-- name: row_release
-- Makes a waiting message ready: its turn in its sequence has come. Locks: the database, as every write.
UPDATE {queue} SET subqueue = 'I' WHERE id = :row_version AND subqueue = 'R'

-- name: failed_list
-- Failed messages after an id, oldest first. Locks: none.
SELECT
    q.id, q.unique_id, q.label, q.retry_count, q.error_info,
    CAST(round((julianday(strftime('%Y-%m-%d %H:%M:%f', 'now')) - julianday(q.retry_time)) * 86400000) AS INTEGER)
FROM {queue} AS q
WHERE q.subqueue = 'F' AND q.id > :after
ORDER BY q.id
LIMIT :limit

-- name: failed_retry
-- Makes all failed messages ready again, as new. Their retry time stays, as in the reference. Locks: the database, as
-- every write.
UPDATE {queue} SET subqueue = 'I', retry_count = 0, error_info = NULL WHERE subqueue = 'F'

-- name: failed_retry_one
-- Makes one failed message ready again, as new. Locks: the database, as every write.
UPDATE {queue} SET subqueue = 'I', retry_count = 0, error_info = NULL WHERE id = :row_version AND subqueue = 'F'

-- name: failed_drop_one
-- Deletes one failed message for good. Locks: the database, as every write.
DELETE FROM {queue} WHERE id = :row_version AND subqueue = 'F'

-- name: purge_due
-- Retention: deletes processed messages that were due long enough ago, as the reference measures it. Locks: the
-- database, as every write.
DELETE FROM {queue}
WHERE id IN (
    SELECT id FROM {queue}
    WHERE subqueue = 'X'
        AND retry_time <= strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', (-1000 * :seconds) / 1000.0))
    LIMIT :limit
)

-- name: purge_processed
-- Retention: deletes processed messages that were processed long enough ago. Locks: the database, as every write.
DELETE FROM {queue}
WHERE id IN (
    SELECT id FROM {queue}
    WHERE subqueue = 'X'
        AND last_processed <= strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', (-1000 * :seconds) / 1000.0))
    LIMIT :limit
)

-- name: discover
-- Tables that have the shape of an NGinn queue; there is no schema here. Locks: none.
SELECT m.name
FROM sqlite_master AS m
WHERE :schema IS NOT NULL AND m.type = 'table' AND (
    SELECT count(*) FROM pragma_table_info(m.name) AS c
    WHERE c.name IN ('from_endpoint', 'to_endpoint', 'subqueue', 'retry_time', 'msg_text', 'msg_headers')
) = 6
ORDER BY m.name
