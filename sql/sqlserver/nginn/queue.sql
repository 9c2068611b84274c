-- name: send
-- Inserts messages in subqueue I, due now (a day ago where they are urgent); one that expires carries its time in a
-- header. A message comes as a JSON text of its columns and its body; the id is not stored. Milliseconds to live, -1 =
-- for ever. The row is repeated for several messages. It is short, and identity values follow the order of the rows.
-- Locks: the new rows.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    JSON_VALUE(v.Columns, '$.from'),
    JSON_VALUE(v.Columns, '$.to'),
    'I',
    GETDATE(),
    NULL,
    0,
    CASE WHEN JSON_VALUE(v.Columns, '$.high') = 'yes' THEN DATEADD(day, -1, GETDATE()) ELSE GETDATE() END,
    JSON_VALUE(v.Columns, '$.correlation'),
    JSON_VALUE(v.Columns, '$.label'),
    CAST(v.Body AS varchar(max)),
    JSON_VALUE(v.Columns, '$.headers')
    + CASE
        WHEN v.Ttl = -1 THEN ''
        ELSE JSON_VALUE(v.Columns, '$.expires')
            + CONVERT(varchar(19), DATEADD(millisecond, v.Ttl + 999, GETDATE()), 120)
    END,
    JSON_VALUE(v.Columns, '$.unique')
FROM (
VALUES
(:id, :milliseconds, :headers, :body)
) AS v (Id, Ttl, Columns, Body)

-- name: delay
-- Inserts messages that are due later: they wait in subqueue R until some reader's scheduler moves them. A message
-- comes as a JSON text of its columns and its body; the id is not stored. Milliseconds until they are due. The row is
-- repeated for several messages. It is short, and identity values follow the order of the rows. Locks: the new rows.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    JSON_VALUE(v.Columns, '$.from'),
    JSON_VALUE(v.Columns, '$.to'),
    'R',
    GETDATE(),
    NULL,
    0,
    DATEADD(minute, v.Ttl / 60000, DATEADD(millisecond, v.Ttl % 60000, GETDATE())),
    JSON_VALUE(v.Columns, '$.correlation'),
    JSON_VALUE(v.Columns, '$.label'),
    CAST(v.Body AS varchar(max)),
    JSON_VALUE(v.Columns, '$.headers'),
    JSON_VALUE(v.Columns, '$.unique')
FROM (
VALUES
(:id, :milliseconds, :headers, :body)
) AS v (Id, Ttl, Columns, Body)

-- name: deliver
-- Moves a group of staged results into their queue, in the order in which they were staged, see send. Locks: the new
-- rows.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    JSON_VALUE(o.Headers, '$.from'),
    JSON_VALUE(o.Headers, '$.to'),
    'I',
    GETDATE(),
    NULL,
    0,
    CASE WHEN JSON_VALUE(o.Headers, '$.high') = 'yes' THEN DATEADD(day, -1, GETDATE()) ELSE GETDATE() END,
    JSON_VALUE(o.Headers, '$.correlation'),
    JSON_VALUE(o.Headers, '$.label'),
    CAST(o.Body AS varchar(max)),
    JSON_VALUE(o.Headers, '$.headers')
    + CASE
        WHEN CAST(o.Milliseconds AS int) = -1 THEN ''
        ELSE JSON_VALUE(o.Headers, '$.expires')
            + CONVERT(varchar(19), DATEADD(millisecond, CAST(o.Milliseconds AS int) + 999, GETDATE()), 120)
    END,
    JSON_VALUE(o.Headers, '$.unique')
FROM {outbox} AS o
WHERE o.ClaimId = CAST(:claim_id AS uniqueidentifier) AND o.Task = :task AND o.GroupNumber = :group_number
ORDER BY o.Ordinal;
SELECT @@ROWCOUNT;

-- name: deliver_delayed
-- Moves a group of staged results into their queue, in the order in which they were staged, see delay. Locks: the new
-- rows.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    JSON_VALUE(o.Headers, '$.from'),
    JSON_VALUE(o.Headers, '$.to'),
    'R',
    GETDATE(),
    NULL,
    0,
    DATEADD(minute, o.Milliseconds / 60000, DATEADD(millisecond, o.Milliseconds % 60000, GETDATE())),
    JSON_VALUE(o.Headers, '$.correlation'),
    JSON_VALUE(o.Headers, '$.label'),
    CAST(o.Body AS varchar(max)),
    JSON_VALUE(o.Headers, '$.headers'),
    JSON_VALUE(o.Headers, '$.unique')
FROM {outbox} AS o
WHERE o.ClaimId = CAST(:claim_id AS uniqueidentifier) AND o.Task = :task AND o.GroupNumber = :group_number
ORDER BY o.Ordinal;
SELECT @@ROWCOUNT;

-- name: peek
-- How many messages are ready, counted up to a limit and without a lock. Locks: none.
SELECT COUNT(*) FROM (SELECT TOP (:limit) 1 AS one FROM {queue} WITH (NOLOCK) WHERE subqueue = 'I') AS waiting

-- name: message
-- One message, whatever its subqueue. Locks: shared while it reads.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    DATEDIFF_BIG(millisecond, '19700101', DATEADD(minute, DATEDIFF(minute, GETDATE(), GETUTCDATE()), q.insert_time)),
    q.msg_headers, q.msg_text
FROM {queue} AS q
WHERE q.id = :row_version

-- name: browse
-- Messages of a subqueue, after an id, that meet further conditions, left in the queue. A failed one has its error, and
-- the milliseconds since it failed. Of bodies the beginning, or all of it if it is asked for. Locks: none.
DECLARE @after bigint = :after, @most int = :limit;
SELECT TOP (@most)
    m.row_version, m.message_id, m.from_endpoint, m.to_endpoint, m.correlation_id, m.label, m.retry_count, m.sent,
    m.msg_headers, m.msg_text, GETDATE(), CAST(m.error_info AS varchar(max)),
    DATEDIFF_BIG(millisecond, m.retry_time, GETDATE())
FROM (
    SELECT
        q.id AS row_version, q.unique_id AS message_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label,
        q.retry_count,
        DATEDIFF_BIG(
            millisecond, '19700101', DATEADD(minute, DATEDIFF(minute, GETDATE(), GETUTCDATE()), q.insert_time)
        ) AS sent,
        q.msg_headers, CASE WHEN :with_body = 1 THEN q.msg_text ELSE LEFT(q.msg_text, 400) END AS msg_text,
        q.error_info, q.retry_time
    FROM {queue} AS q WITH (NOLOCK)
    WHERE q.subqueue = {subqueue}
) AS m
WHERE m.row_version > @after
ORDER BY m.{rank}

-- name: status
-- A queue at a glance: ready messages, up to a limit; milliseconds since the oldest of them was due. Locks: none.
SELECT
    (SELECT COUNT(*) FROM (SELECT TOP (:limit) 1 AS one FROM {queue} WITH (NOLOCK) WHERE subqueue = 'I') AS waiting),
    (
        SELECT DATEDIFF_BIG(millisecond, MIN(retry_time), GETDATE())
        FROM {queue} WITH (NOLOCK)
        WHERE subqueue = 'I' AND retry_time <= GETDATE()
    )

-- name: statistics
-- The messages by subqueue, and the average milliseconds between the time at which a message was due and the time at
-- which it was processed, over those that were due in the last minutes. The index on subqueue and retry_time serves all
-- of them. Messages in work count as R. Locks: none.
SELECT
    (SELECT COUNT(*) FROM {queue} WITH (NOLOCK) WHERE subqueue = 'I'),
    (SELECT COUNT(*) FROM {queue} WITH (NOLOCK) WHERE subqueue = 'R'),
    (SELECT COUNT(*) FROM {queue} WITH (NOLOCK) WHERE subqueue = 'X'),
    (SELECT COUNT(*) FROM {queue} WITH (NOLOCK) WHERE subqueue = 'F'),
    (
        SELECT AVG(CAST(DATEDIFF_BIG(millisecond, retry_time, last_processed) AS float))
        FROM {queue} WITH (NOLOCK)
        WHERE subqueue = 'X' AND retry_time > DATEADD(minute, -CAST(:minutes AS int), GETDATE())
    )

-- name: count_delayed
-- How many messages wait for their time, up to a limit, and the milliseconds until the next is due; without those in
-- work. Locks: none.
SELECT
    (
        SELECT COUNT(*)
        FROM (
            SELECT TOP (:limit) 1 AS one FROM {queue} AS q WITH (NOLOCK)
            WHERE q.subqueue = 'R'
                AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
        ) AS d
    ),
    (
        SELECT DATEDIFF_BIG(millisecond, GETDATE(), MIN(q.retry_time))
        FROM {queue} AS q WITH (NOLOCK)
        WHERE q.subqueue = 'R'
            AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
    )

-- name: move_due
-- The scheduler's pass: messages whose time has come are ready. Those of batches in work are left to their claims,
-- which may be taken over; other readers return them when the lease is over. Locks: the rows it changes; rows that
-- others have locked are skipped.
UPDATE q
SET subqueue = 'I'
FROM {queue} AS q WITH (READPAST, ROWLOCK)
INNER JOIN (
    SELECT TOP (:limit) q.id
    FROM {queue} AS q WITH (UPDLOCK, READPAST, ROWLOCK)
    WHERE q.subqueue = 'R' AND q.retry_time <= GETDATE()
        AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
    ORDER BY q.retry_time
) AS due ON due.id = q.id;
SELECT @@ROWCOUNT;

-- name: receive
-- Receives: ready messages that no other process holds become processed ones, in a transaction that stays open while
-- they are worked on. The hints are those of the reference. Only what the UPDATE got is handed out, so that a row which
-- another process changed meanwhile is not received twice. The label is no part of the index: reading it locks the row
-- and not the index key alone, in the order of the reference, or the two would deadlock. Locks: the rows it changes;
-- rows that others have locked are skipped.
DECLARE @head TABLE (id bigint, place int, label varchar(100));
DECLARE @taken TABLE (id bigint);
INSERT INTO @head (id, place, label)
SELECT id, ROW_NUMBER() OVER (ORDER BY {order}), label
FROM (
    SELECT TOP (:limit) id, retry_time, label FROM {queue} WITH (UPDLOCK, READPAST, ROWLOCK)
    WHERE subqueue = 'I' ORDER BY {order}
) AS head;
UPDATE q
SET subqueue = 'X', last_processed = GETDATE()
OUTPUT inserted.id INTO @taken (id)
FROM {queue} AS q WITH (READPAST, ROWLOCK)
INNER JOIN @head AS h ON h.id = q.id
WHERE q.subqueue = 'I';
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, h.label, q.retry_count,
    DATEDIFF_BIG(millisecond, '19700101', DATEADD(minute, DATEDIFF(minute, GETDATE(), GETUTCDATE()), q.insert_time)),
    q.msg_headers, q.msg_text, GETDATE(), q.retry_time
FROM {queue} AS q
INNER JOIN @taken AS t ON t.id = q.id
INNER JOIN @head AS h ON h.id = t.id
ORDER BY h.place;

-- name: row_take
-- Takes one message, unless another process has taken or locked it. Locks: the row.
UPDATE {queue} WITH (READPAST, ROWLOCK)
SET subqueue = 'X', last_processed = GETDATE()
WHERE id = :row_version AND subqueue = 'I';
SELECT @@ROWCOUNT;

-- name: row_refuse
-- A message that cannot be read, found during its receive: it goes from processed to failed before any process sees it.
-- Locks: the row.
UPDATE {queue}
SET subqueue = 'F', retry_count = retry_count + 1, retry_time = GETDATE(), error_info = :error
WHERE id = :row_version

-- name: row_postpone
-- A message that is being received has to wait for those before it. Locks: the row.
DECLARE @ms bigint = :delay;
UPDATE {queue}
SET subqueue = 'R', last_processed = GETDATE(),
    retry_time = DATEADD(minute, @ms / 60000, DATEADD(millisecond, @ms % 60000, GETDATE()))
WHERE id = :row_version

-- name: row_retry
-- A message failed after its receive was rolled back, and is tried again later; not if another process has taken it
-- since. Locks: the row, unless another process has locked it.
DECLARE @ms bigint = :delay;
UPDATE {queue} WITH (READPAST, ROWLOCK)
SET subqueue = 'R', last_processed = GETDATE(), retry_count = retry_count + 1,
    retry_time = DATEADD(minute, @ms / 60000, DATEADD(millisecond, @ms % 60000, GETDATE())), error_info = :error
WHERE id = :row_version AND subqueue = 'I';
SELECT @@ROWCOUNT;

-- name: row_fail
-- A message failed for good after its receive was rolled back; not if another process has taken it since. Locks: the
-- row, unless another process has locked it.
UPDATE {queue} WITH (READPAST, ROWLOCK)
SET subqueue = 'F', last_processed = GETDATE(), retry_count = retry_count + 1, retry_time = GETDATE(),
    error_info = :error
WHERE id = :row_version AND subqueue = 'I';
SELECT @@ROWCOUNT;

-- name: row_release
-- Makes a waiting message ready: its turn in its sequence has come. Locks: the row.
UPDATE {queue} SET subqueue = 'I' WHERE id = :row_version AND subqueue = 'R';
SELECT @@ROWCOUNT;

-- name: failed_list
-- Failed messages after an id, oldest first. Locks: none.
DECLARE @after bigint = :after, @most int = :limit;
SELECT TOP (@most)
    q.id, q.unique_id, q.label, q.retry_count, CAST(q.error_info AS varchar(max)),
    DATEDIFF_BIG(millisecond, q.retry_time, GETDATE())
FROM {queue} AS q WITH (NOLOCK)
WHERE q.subqueue = 'F' AND q.id > @after
ORDER BY q.id

-- name: failed_retry
-- Makes all failed messages ready again, as new. Their retry time stays, as in the reference. Locks: the rows it
-- changes.
UPDATE {queue} SET subqueue = 'I', retry_count = 0, error_info = NULL WHERE subqueue = 'F';
SELECT @@ROWCOUNT;

-- name: failed_retry_one
-- Makes one failed message ready again, as new. Locks: the row.
UPDATE {queue} SET subqueue = 'I', retry_count = 0, error_info = NULL WHERE id = :row_version AND subqueue = 'F';
SELECT @@ROWCOUNT;

-- name: failed_drop_one
-- Deletes one failed message for good. Locks: the row.
DELETE FROM {queue} WHERE id = :row_version AND subqueue = 'F';
SELECT @@ROWCOUNT;

-- name: purge_due
-- Retention: deletes processed messages that were due long enough ago, as the reference measures it. Locks: the rows it
-- deletes; rows that others have locked are skipped.
DECLARE @seconds int = :seconds, @most int = :limit;
DELETE TOP (@most)
FROM {queue} WITH (READPAST, ROWLOCK)
WHERE subqueue = 'X' AND retry_time <= DATEADD(second, -@seconds, GETDATE());
SELECT @@ROWCOUNT;

-- name: purge_processed
-- Retention: deletes processed messages that were processed long enough ago. Locks: the rows it deletes; rows that
-- others have locked are skipped.
DECLARE @seconds int = :seconds, @most int = :limit;
DELETE TOP (@most)
FROM {queue} WITH (READPAST, ROWLOCK)
WHERE subqueue = 'X' AND last_processed <= DATEADD(second, -@seconds, GETDATE());
SELECT @@ROWCOUNT;

-- name: discover
-- Tables of a schema that have the shape of an NGinn queue. Locks: none.
SELECT CAST(t.name AS nvarchar(128))
FROM {sys}.tables AS t
INNER JOIN {sys}.schemas AS s ON s.schema_id = t.schema_id
WHERE s.name = :schema
    AND (
        SELECT COUNT(*) FROM {sys}.columns AS c
        WHERE c.object_id = t.object_id
            AND LOWER(c.name) IN ('from_endpoint', 'to_endpoint', 'subqueue', 'retry_time', 'msg_text', 'msg_headers')
    ) = 6
ORDER BY t.name
