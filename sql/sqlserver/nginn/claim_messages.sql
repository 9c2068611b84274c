-- name: note
-- Claims, first half: notes which ready messages no other process holds, bounded by messages and by bytes (the first
-- one is always taken). Locks: the rows it notes, until the transaction ends; rows that others have locked are skipped.
DECLARE @messages int = :messages, @bytes bigint = :bytes, @claim uniqueidentifier = :claim_id,
    @lease datetime = DATEADD(millisecond, :lease, GETDATE());
INSERT INTO {claimed} (claim_id, id, bytes, due, lease)
SELECT @claim, id, bytes, retry_time, @lease
FROM (
    SELECT id, bytes, retry_time, SUM(bytes) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) - bytes AS before
    FROM (
        SELECT TOP (@messages)
            id, retry_time,
            CAST(ISNULL(DATALENGTH(msg_text), 0) AS bigint) + ISNULL(DATALENGTH(msg_headers), 0) AS bytes
        FROM {queue} WITH (UPDLOCK, READPAST, ROWLOCK)
        WHERE subqueue = 'I'
        ORDER BY {order}
    ) AS head
) AS sized
WHERE before < @bytes;
SELECT @@ROWCOUNT;

-- name: move
-- Claims, second half: moves what was noted to subqueue R, with the end of the lease as its retry time. Locks: the rows
-- it changes.
UPDATE q
SET subqueue = 'R', retry_time = c.lease
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier) AND q.subqueue = 'I';
SELECT @@ROWCOUNT;

-- name: extend
-- Holds the messages of a claim for longer: those that still belong to it. Locks: the rows it changes.
DECLARE @lease datetime = DATEADD(millisecond, :lease, GETDATE()), @claim uniqueidentifier = :claim_id;
UPDATE q
SET retry_time = @lease
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = @claim AND q.subqueue = 'R' AND q.retry_time = c.lease;
UPDATE {claimed} SET lease = @lease WHERE claim_id = @claim;

-- name: forget_lost
-- Takes the messages out of a claim that no longer belong to it: the lease was over, and another process had them.
-- Locks: the rows it deletes.
DELETE FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uniqueidentifier)
    AND NOT EXISTS (
        SELECT 1 FROM {queue} AS q
        WHERE q.id = {claimed}.id AND q.subqueue = 'R' AND q.retry_time = {claimed}.lease
    );
SELECT @@ROWCOUNT;

-- name: parts
-- Cuts a claim into parts, limited in messages and bytes, so that a reader can read each of them at once. Locks:
-- shared while it reads.
SELECT MIN(id), MAX(id), COUNT(*), SUM(bytes)
FROM (
    SELECT
        id, bytes,
        (ROW_NUMBER() OVER (ORDER BY id) - 1) / CAST(:messages AS bigint) AS row_part,
        (SUM(bytes) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - bytes) / CAST(:bytes AS bigint) AS byte_part
    FROM {claimed}
    WHERE claim_id = CAST(:claim_id AS uniqueidentifier)
) AS parts
GROUP BY row_part, byte_part
ORDER BY 1

-- name: read
-- One part of a claim, in order: the messages that still belong to it, with the moment of their sending in milliseconds
-- since 1970. Locks: shared while it reads.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    DATEDIFF_BIG(millisecond, '19700101', DATEADD(minute, DATEDIFF(minute, GETDATE(), GETUTCDATE()), q.insert_time)),
    q.msg_headers, q.msg_text
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier) AND c.id BETWEEN :first AND :last AND q.subqueue = 'R'
    AND q.retry_time = c.lease
ORDER BY q.id

-- name: read_headers
-- As read with the beginning of the bodies only, for readers that do not want them. Locks: shared while it reads.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    DATEDIFF_BIG(millisecond, '19700101', DATEADD(minute, DATEDIFF(minute, GETDATE(), GETUTCDATE()), q.insert_time)),
    q.msg_headers, LEFT(q.msg_text, 400)
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier) AND c.id BETWEEN :first AND :last AND q.subqueue = 'R'
    AND q.retry_time = c.lease
ORDER BY q.id

-- name: sizes
-- Messages, bytes and first id of a claim. Locks: shared while it reads.
SELECT COUNT(*), COALESCE(SUM(bytes), 0), MIN(id)
FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uniqueidentifier)

-- name: figures
-- Which messages a claim holds, as figures to compare with what its holder read: how many, the smallest and largest of
-- their ids, and the sum of the lower 32 bits, which does not overflow. Locks: shared while it reads.
SELECT COUNT(*), MIN(id), MAX(id), COALESCE(SUM(id & CAST(4294967295 AS bigint)), 0)
FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uniqueidentifier)

-- name: middle
-- The last id of a claim's first messages. The offset is how many of them stay (at least one), less one. Locks: shared
-- while it reads.
SELECT id
FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uniqueidentifier)
ORDER BY id
OFFSET CAST(:offset AS int) ROWS FETCH NEXT 1 ROWS ONLY

-- name: split
-- Hands the messages of a claim after an id to another claim. Locks: the rows it changes.
UPDATE {claimed} SET claim_id = CAST(:new_claim_id AS uniqueidentifier)
WHERE claim_id = CAST(:claim_id AS uniqueidentifier) AND id > :last

-- name: separate
-- Hands a range of a claim's messages to another claim. Locks: the rows it changes.
UPDATE {claimed}
SET claim_id = CAST(:new_claim_id AS uniqueidentifier)
WHERE claim_id = CAST(:claim_id AS uniqueidentifier) AND id BETWEEN :first AND :last

-- name: marked
-- The messages of a claim whose headers hold a text. Locks: shared while it reads.
SELECT c.id
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier) AND CHARINDEX(:text, q.msg_headers) > 0
ORDER BY c.id

-- name: tried
-- The messages of a claim that failed before. Locks: shared while it reads.
SELECT c.id
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier) AND q.retry_count > 0
ORDER BY c.id

-- name: sort
-- What decides whether a claimed message is one to work on: its destination, its headers and the beginning of its body.
-- The database's clock comes with it. Locks: shared while it reads.
SELECT q.id, q.to_endpoint, q.msg_headers, LEFT(q.msg_text, 400), GETDATE()
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier)
ORDER BY q.id

-- name: complete
-- Completes: messages that still belong to the claim become processed ones, with the time at which they had been due.
-- Locks: the rows it changes.
UPDATE q
SET subqueue = 'X', last_processed = GETDATE(), retry_time = c.due
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier) AND c.id BETWEEN :first AND :last AND q.subqueue = 'R'
    AND q.retry_time = c.lease;
SELECT @@ROWCOUNT;

-- name: fail_row
-- One message of a claim failed for good. Locks: the message's row.
UPDATE q
SET subqueue = 'F', last_processed = GETDATE(), retry_count = q.retry_count + 1,
    retry_time = GETDATE(), error_info = :error
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier) AND c.id = :row_version AND q.subqueue = 'R'
    AND q.retry_time = c.lease;
SELECT @@ROWCOUNT;

-- name: retry_row
-- One message of a claim failed and is tried again later. Locks: the message's row.
DECLARE @ms bigint = :delay;
UPDATE q
SET subqueue = 'R', last_processed = GETDATE(), retry_count = q.retry_count + 1,
    retry_time = DATEADD(minute, @ms / 60000, DATEADD(millisecond, @ms % 60000, GETDATE())), error_info = :error
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier) AND c.id = :row_version AND q.subqueue = 'R'
    AND q.retry_time = c.lease;
SELECT @@ROWCOUNT;

-- name: postpone_row
-- One message of a claim has to wait for those before it. Locks: the message's row.
DECLARE @ms bigint = :delay;
UPDATE q
SET subqueue = 'R', last_processed = GETDATE(),
    retry_time = DATEADD(minute, @ms / 60000, DATEADD(millisecond, @ms % 60000, GETDATE()))
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier) AND c.id = :row_version AND q.subqueue = 'R'
    AND q.retry_time = c.lease;
SELECT @@ROWCOUNT;

-- name: drop_one
-- Takes one message out of a claim. Locks: the row.
DELETE FROM {claimed} WHERE claim_id = CAST(:claim_id AS uniqueidentifier) AND id = :row_version;
SELECT @@ROWCOUNT;

-- name: drop
-- Deletes the list of messages that belonged to a claim. Locks: the rows it deletes.
DELETE FROM {claimed} WHERE claim_id = CAST(:claim_id AS uniqueidentifier);
SELECT @@ROWCOUNT;

-- name: return
-- Puts the messages of a claim back as they were. Locks: the rows it changes.
UPDATE q
SET subqueue = 'I', retry_time = c.due
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(:claim_id AS uniqueidentifier) AND q.subqueue = 'R' AND q.retry_time = c.lease;
SELECT @@ROWCOUNT;
