-- name: take
-- Claims: notes which ready messages no other process holds, bounded by messages and by bytes (the first one is always
-- taken), and moves them to subqueue R with the end of the lease as their retry time. Locks: the rows it changes; rows
-- that others have locked are skipped.
WITH head AS MATERIALIZED (
    SELECT id, retry_time, COALESCE(octet_length(msg_text), 0) + COALESCE(octet_length(msg_headers), 0) AS bytes
    FROM {queue}
    WHERE subqueue = 'I'
    ORDER BY {order}
    LIMIT :messages
    FOR UPDATE SKIP LOCKED
),
sized AS (
    SELECT id, retry_time, bytes, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM head
),
noted AS (
    INSERT INTO {claimed} (claim_id, id, bytes, due, lease)
    SELECT
        CAST(p.claim AS uuid), s.id, s.bytes, s.retry_time,
        (now() AT TIME ZONE 'UTC') + p.lease * INTERVAL '1 millisecond'
    FROM sized AS s, (SELECT CAST(:bytes AS bigint) AS bytes, CAST(:claim_id AS text) AS claim,
        CAST(:lease AS integer) AS lease) AS p
    WHERE s.before < p.bytes
    RETURNING id, lease
),
moved AS (
    UPDATE {queue} AS q SET subqueue = 'R', retry_time = n.lease FROM noted AS n WHERE q.id = n.id RETURNING q.id
)
SELECT count(*) FROM moved

-- name: extend
-- Holds the messages of a claim for longer: those that still belong to it. now() is one moment in the whole statement.
-- Locks: the rows it changes.
WITH term AS MATERIALIZED (
    SELECT
        (now() AT TIME ZONE 'UTC') + CAST(:lease AS integer) * INTERVAL '1 millisecond' AS lease,
        CAST(:claim_id AS uuid) AS claim_id
),
kept AS (
    UPDATE {queue} AS q
    SET retry_time = t.lease
    FROM {claimed} AS c, term AS t
    WHERE c.id = q.id AND c.claim_id = t.claim_id AND q.subqueue = 'R' AND q.retry_time = c.lease
)
UPDATE {claimed} AS c SET lease = t.lease FROM term AS t WHERE c.claim_id = t.claim_id

-- name: forget_lost
-- Takes the messages out of a claim that no longer belong to it: the lease was over, and another process had them.
-- Locks: the rows it deletes.
DELETE FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uuid)
    AND NOT EXISTS (
        SELECT 1 FROM {queue} AS q
        WHERE q.id = {claimed}.id AND q.subqueue = 'R' AND q.retry_time = {claimed}.lease
    )

-- name: parts
-- Cuts a claim into parts, limited in messages and bytes, so that a reader can read each of them at once. Locks:
-- none.
SELECT MIN(id), MAX(id), COUNT(*), SUM(bytes)
FROM (
    SELECT
        id, bytes,
        (ROW_NUMBER() OVER (ORDER BY id) - 1) / CAST(:messages AS bigint) AS row_part,
        CAST(SUM(bytes) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - bytes AS bigint) / CAST(:bytes AS bigint)
        AS byte_part
    FROM {claimed}
    WHERE claim_id = CAST(:claim_id AS uuid)
) AS parts
GROUP BY row_part, byte_part
ORDER BY 1

-- name: read
-- One part of a claim, in order: the messages that still belong to it, with the moment of their sending in milliseconds
-- since 1970, if it is one. Locks: none.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CASE WHEN isfinite(q.insert_time) THEN CAST(extract(EPOCH FROM q.insert_time) * 1000 AS bigint) END, q.msg_headers,
    q.msg_text
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(:claim_id AS uuid) AND c.id BETWEEN :first AND :last AND q.subqueue = 'R'
    AND q.retry_time = c.lease
ORDER BY q.id

-- name: read_headers
-- As read with the beginning of the bodies only, for readers that do not want them. Locks: none.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CASE WHEN isfinite(q.insert_time) THEN CAST(extract(EPOCH FROM q.insert_time) * 1000 AS bigint) END, q.msg_headers,
    LEFT(q.msg_text, 400)
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(:claim_id AS uuid) AND c.id BETWEEN :first AND :last AND q.subqueue = 'R'
    AND q.retry_time = c.lease
ORDER BY q.id

-- name: sizes
-- Messages, bytes and first id of a claim. Locks: none.
SELECT COUNT(*), COALESCE(SUM(bytes), 0), MIN(id)
FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uuid)

-- name: figures
-- Which messages a claim holds, as figures to compare with what its holder read: how many, the smallest and largest of
-- their ids, and the sum of the lower 32 bits, which does not overflow. Locks: none.
SELECT COUNT(*), MIN(id), MAX(id), COALESCE(CAST(SUM(id & CAST(4294967295 AS bigint)) AS bigint), 0)
FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uuid)

-- name: middle
-- The last id of a claim's first messages. The offset is how many of them stay (at least one), less one. Locks: none.
SELECT id FROM {claimed} WHERE claim_id = CAST(:claim_id AS uuid) ORDER BY id LIMIT 1 OFFSET :offset

-- name: split
-- Hands the messages of a claim after an id to another claim. Locks: the rows it changes.
UPDATE {claimed} SET claim_id = CAST(:new_claim_id AS uuid) WHERE claim_id = CAST(:claim_id AS uuid) AND id > :last

-- name: separate
-- Hands a range of a claim's messages to another claim. Locks: the rows it changes.
UPDATE {claimed} SET claim_id = CAST(:new_claim_id AS uuid)
WHERE claim_id = CAST(:claim_id AS uuid) AND id BETWEEN :first AND :last

-- name: marked
-- The messages of a claim whose headers hold a text. Locks: none.
SELECT c.id
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(:claim_id AS uuid) AND strpos(q.msg_headers, CAST(:text AS text)) > 0
ORDER BY c.id

-- name: tried
-- The messages of a claim that failed before. Locks: none.
SELECT c.id
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(:claim_id AS uuid) AND q.retry_count > 0
ORDER BY c.id

-- name: sort
-- What decides whether a claimed message is one to work on: its destination, its headers and the beginning of its body.
-- The database's clock comes with it. Locks: none.
SELECT q.id, q.to_endpoint, q.msg_headers, LEFT(q.msg_text, 400), (now() AT TIME ZONE 'UTC')
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(:claim_id AS uuid)
ORDER BY q.id

-- name: complete
-- Completes: messages that still belong to the claim become processed ones, with the time at which they had been due.
-- Locks: the rows it changes.
UPDATE {queue} AS q
SET subqueue = 'X', last_processed = (now() AT TIME ZONE 'UTC'), retry_time = c.due
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = CAST(:claim_id AS uuid) AND c.id BETWEEN :first AND :last
    AND q.subqueue = 'R' AND q.retry_time = c.lease

-- name: fail_row
-- One message of a claim failed for good. Locks: the message's row.
UPDATE {queue} AS q
SET subqueue = 'F', last_processed = (now() AT TIME ZONE 'UTC'), retry_count = q.retry_count + 1,
    retry_time = (now() AT TIME ZONE 'UTC'), error_info = :error
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = CAST(:claim_id AS uuid) AND c.id = :row_version AND q.subqueue = 'R'
    AND q.retry_time = c.lease

-- name: retry_row
-- One message of a claim failed and is tried again later. Locks: the message's row.
UPDATE {queue} AS q
SET subqueue = 'R', last_processed = (now() AT TIME ZONE 'UTC'), retry_count = q.retry_count + 1,
    retry_time = (now() AT TIME ZONE 'UTC') + CAST(:delay AS bigint) * INTERVAL '1 millisecond', error_info = :error
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = CAST(:claim_id AS uuid) AND c.id = :row_version AND q.subqueue = 'R'
    AND q.retry_time = c.lease

-- name: postpone_row
-- One message of a claim has to wait for those before it. Locks: the message's row.
UPDATE {queue} AS q
SET subqueue = 'R', last_processed = (now() AT TIME ZONE 'UTC'),
    retry_time = (now() AT TIME ZONE 'UTC') + CAST(:delay AS bigint) * INTERVAL '1 millisecond'
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = CAST(:claim_id AS uuid) AND c.id = :row_version AND q.subqueue = 'R'
    AND q.retry_time = c.lease

-- name: drop_one
-- Takes one message out of a claim. Locks: the row.
DELETE FROM {claimed} WHERE claim_id = CAST(:claim_id AS uuid) AND id = :row_version

-- name: drop
-- Deletes the list of messages that belonged to a claim. Locks: the rows it deletes.
DELETE FROM {claimed} WHERE claim_id = CAST(:claim_id AS uuid)

-- name: return
-- Puts the messages of a claim back as they were. Locks: the rows it changes.
UPDATE {queue} AS q
SET subqueue = 'I', retry_time = c.due
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = CAST(:claim_id AS uuid) AND q.subqueue = 'R' AND q.retry_time = c.lease
