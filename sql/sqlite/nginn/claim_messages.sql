-- name: note
-- Claims, first half: notes which messages are ready, bounded by messages and by bytes (the first one is always taken).
-- Locks: the database, as every write.
INSERT INTO {claimed} (claim_id, id, bytes, due, lease)
SELECT :claim_id, id, bytes, retry_time, strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', :lease / 1000.0))
FROM (
    SELECT id, bytes, retry_time, sum(bytes) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) - bytes AS before
    FROM (
        SELECT
            id, retry_time,
            COALESCE(length(CAST(msg_text AS BLOB)), 0) + COALESCE(length(CAST(msg_headers AS BLOB)), 0) AS bytes,
            row_number() OVER (ORDER BY {order}) AS place
        FROM {queue}
        WHERE subqueue = 'I'
        ORDER BY {order}
        LIMIT :messages
    )
)
WHERE before < :bytes

-- name: move
-- Claims, second half: moves what was noted to subqueue R, with the end of the lease as its retry time. Locks: the
-- database, as every write.
UPDATE {queue} AS q
SET subqueue = 'R', retry_time = c.lease
FROM {claimed} AS c
WHERE q.id = c.id AND c.claim_id = :claim_id AND q.subqueue = 'I'

-- name: lease_end
-- When a lease ends that begins now. Locks: none.
SELECT strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', :lease / 1000.0))

-- name: extend
-- Holds the messages of a claim for longer, first half: the messages in the queue, those that still belong to it.
-- Locks: the database, as every write.
UPDATE {queue} AS q
SET retry_time = :lease_end
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = :claim_id AND q.subqueue = 'R' AND q.retry_time = c.lease

-- name: extended
-- Holds the messages of a claim for longer, second half: the rows of the claim. Locks: the database, as every write.
UPDATE {claimed} SET lease = :lease_end WHERE claim_id = :claim_id

-- name: forget_lost
-- Takes the messages out of a claim that no longer belong to it: the lease was over, and another process had them.
-- Locks: the database, as every write.
DELETE FROM {claimed}
WHERE claim_id = :claim_id
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
        (ROW_NUMBER() OVER (ORDER BY id) - 1) / :messages AS row_part,
        (SUM(bytes) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - bytes) / :bytes AS byte_part
    FROM {claimed}
    WHERE claim_id = :claim_id
) AS parts
GROUP BY row_part, byte_part
ORDER BY 1

-- name: read
-- One part of a claim, in order: the messages that still belong to it, with the moment of their sending in milliseconds
-- since 1970. Locks: none.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CAST(round((julianday(q.insert_time) - 2440587.5) * 86400000) AS INTEGER), q.msg_headers, q.msg_text
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = :claim_id AND c.id BETWEEN :first AND :last AND q.subqueue = 'R' AND q.retry_time = c.lease
ORDER BY q.id

-- name: read_headers
-- As read with the beginning of the bodies only, for readers that do not want them. Locks: none.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CAST(round((julianday(q.insert_time) - 2440587.5) * 86400000) AS INTEGER), q.msg_headers, substr(q.msg_text, 1, 400)
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = :claim_id AND c.id BETWEEN :first AND :last AND q.subqueue = 'R' AND q.retry_time = c.lease
ORDER BY q.id

-- name: sizes
-- Messages, bytes and first id of a claim. Locks: none.
SELECT COUNT(*), COALESCE(SUM(bytes), 0), MIN(id)
FROM {claimed}
WHERE claim_id = :claim_id

-- name: figures
-- Which messages a claim holds, as figures to compare with what its holder read: how many, the smallest and largest of
-- their ids, and the sum of the lower 32 bits, which does not overflow. Locks: none.
SELECT COUNT(*), MIN(id), MAX(id), COALESCE(SUM(id & 4294967295), 0)
FROM {claimed}
WHERE claim_id = :claim_id

-- name: middle
-- The last id of a claim's first messages. The offset is how many of them stay (at least one), less one. Locks: none.
SELECT id FROM {claimed} WHERE claim_id = :claim_id ORDER BY id LIMIT 1 OFFSET :offset

-- name: split
-- Hands the messages of a claim after an id to another claim. Locks: the database, as every write.
UPDATE {claimed} SET claim_id = :new_claim_id WHERE claim_id = :claim_id AND id > :last

-- name: separate
-- Hands a range of a claim's messages to another claim. Locks: the database, as every write.
UPDATE {claimed} SET claim_id = :new_claim_id WHERE claim_id = :claim_id AND id BETWEEN :first AND :last

-- name: marked
-- The messages of a claim whose headers hold a text. Locks: none.
SELECT c.id
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = :claim_id AND instr(q.msg_headers, :text) > 0
ORDER BY c.id

-- name: tried
-- The messages of a claim that failed before. Locks: none.
SELECT c.id
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = :claim_id AND q.retry_count > 0
ORDER BY c.id

-- name: sort
-- What decides whether a claimed message is one to work on: its destination, its headers and the beginning of its body.
-- The database's clock comes with it. Locks: none.
SELECT q.id, q.to_endpoint, q.msg_headers, substr(q.msg_text, 1, 400), strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = :claim_id
ORDER BY q.id

-- name: complete
-- Completes: messages that still belong to the claim become processed ones, with the time at which they had been due.
-- Locks: the database, as every write.
UPDATE {queue} AS q
SET subqueue = 'X', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'), retry_time = c.due
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = :claim_id AND c.id BETWEEN :first AND :last AND q.subqueue = 'R'
    AND q.retry_time = c.lease

-- name: fail_row
-- One message of a claim failed for good. Locks: the database, as every write.
UPDATE {queue} AS q
SET subqueue = 'F', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'), retry_count = q.retry_count + 1,
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now'), error_info = :error
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = :claim_id AND c.id = :row_version AND q.subqueue = 'R' AND q.retry_time = c.lease

-- name: retry_row
-- One message of a claim failed and is tried again later. Locks: the database, as every write.
UPDATE {queue} AS q
SET subqueue = 'R', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'), retry_count = q.retry_count + 1,
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', :delay / 1000.0)), error_info = :error
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = :claim_id AND c.id = :row_version AND q.subqueue = 'R' AND q.retry_time = c.lease

-- name: postpone_row
-- One message of a claim has to wait for those before it. Locks: the database, as every write.
UPDATE {queue} AS q
SET subqueue = 'R', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'),
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', :delay / 1000.0))
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = :claim_id AND c.id = :row_version AND q.subqueue = 'R' AND q.retry_time = c.lease

-- name: drop_one
-- Takes one message out of a claim. Locks: the database, as every write.
DELETE FROM {claimed} WHERE claim_id = :claim_id AND id = :row_version

-- name: drop
-- Deletes the list of messages that belonged to a claim. Locks: the database, as every write.
DELETE FROM {claimed} WHERE claim_id = :claim_id

-- name: return
-- Puts the messages of a claim back as they were. Locks: the database, as every write.
UPDATE {queue} AS q
SET subqueue = 'I', retry_time = c.due
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = :claim_id AND q.subqueue = 'R' AND q.retry_time = c.lease
