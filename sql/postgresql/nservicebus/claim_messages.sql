-- name: take
-- Claims: moves the oldest messages that no other process holds into the queue's .Claimed table, in one statement.
-- Bounded by messages and by bytes (the first message is always taken, or one large message would block the queue);
-- octet_length of a stored value does not read the value. Expired messages are dropped on the way. The running sum
-- needs no ORDER BY: head is materialised in the order of seq, and another sort would change nothing. The headers are
-- read here anyway, so those that hold the text, the forwarding header's name, are counted on the way. Locks: the rows
-- it moves; rows that others have locked are skipped.
WITH head AS MATERIALIZED (
    SELECT ctid, seq, octet_length(headers) + COALESCE(octet_length(body), 0) AS bytes
    FROM {queue}
    ORDER BY seq
    LIMIT :messages
    FOR UPDATE SKIP LOCKED
),
sized AS (
    SELECT ctid, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM head
),
taken AS (
    DELETE FROM {queue}
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM sized WHERE before < :bytes))
    RETURNING id, expires, headers, body, seq
),
kept AS (
    INSERT INTO {claimed} (claim_id, id, expires, headers, body, seq)
    SELECT CAST(:claim_id AS uuid), id, expires, headers, body, seq
    FROM taken
    WHERE expires IS NULL OR expires > (now() AT TIME ZONE 'UTC')
    RETURNING
        seq, octet_length(headers) + COALESCE(octet_length(body), 0) AS bytes,
        strpos(headers, CAST(:text AS text)) > 0 AS forward
)
SELECT
    (SELECT count(*) FROM taken), count(*), COALESCE(sum(bytes), 0), min(seq), count(*) FILTER (WHERE forward)
FROM kept

-- name: parts
-- Cuts a claim into parts, limited in messages and bytes, so that a reader can read each of them at once.
-- Running counts need no ORDER BY: rows come in the order of seq. Locks: none.
SELECT min(seq), max(seq), count(*), sum(bytes)
FROM (
    SELECT
        seq, bytes,
        (row_number() OVER so_far - 1) / CAST(:messages AS bigint) AS row_part,
        (sum(bytes) OVER so_far - bytes) / CAST(:bytes AS bigint) AS byte_part
    FROM (
        SELECT seq, octet_length(headers) + COALESCE(octet_length(body), 0) AS bytes
        FROM {claimed}
        WHERE claim_id = CAST(:claim_id AS uuid)
        ORDER BY seq
    ) AS sizes
    WINDOW so_far AS (ROWS UNBOUNDED PRECEDING)
) AS parts
GROUP BY row_part, byte_part
ORDER BY 1

-- name: read
-- One part of a claim, in order. Locks: none.
SELECT CAST(id AS text), seq, headers, body, NULL AS correlation_id, NULL AS reply_to_address
FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uuid) AND seq BETWEEN :first AND :last
ORDER BY seq

-- name: read_headers
-- As read without the bodies, for readers that do not want them. Locks: none.
SELECT CAST(id AS text), seq, headers, NULL AS body, NULL AS correlation_id, NULL AS reply_to_address
FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uuid) AND seq BETWEEN :first AND :last
ORDER BY seq

-- name: sizes
-- Messages, bytes and first row version of a claim. Locks: none.
SELECT count(*), COALESCE(sum(octet_length(headers) + COALESCE(octet_length(body), 0)), 0), min(seq)
FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uuid)

-- name: figures
-- Which messages a claim holds, as figures to compare with what its holder read: how many, the smallest and largest of
-- their row versions, and the sum of the lower 32 bits, which does not overflow. Locks: none.
SELECT count(*), min(seq), max(seq), COALESCE(CAST(sum(seq & CAST(4294967295 AS bigint)) AS bigint), 0)
FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uuid)

-- name: middle
-- The last row version of a claim's first messages. The offset is how many of them stay (at least one), less one.
-- Locks: none.
SELECT seq FROM {claimed} WHERE claim_id = CAST(:claim_id AS uuid) ORDER BY seq LIMIT 1 OFFSET :offset

-- name: split
-- Hands the messages of a claim after a row version to another claim. Locks: the rows it changes.
UPDATE {claimed} SET claim_id = CAST(:new_claim_id AS uuid) WHERE claim_id = CAST(:claim_id AS uuid) AND seq > :last

-- name: separate
-- Hands a range of a claim's messages to another claim. Locks: the rows it changes.
UPDATE {claimed} SET claim_id = CAST(:new_claim_id AS uuid)
WHERE claim_id = CAST(:claim_id AS uuid) AND seq BETWEEN :first AND :last

-- name: marked
-- The messages of a claim whose headers hold a text. Locks: none.
SELECT seq FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uuid) AND strpos(headers, CAST(:text AS text)) > 0 ORDER BY seq

-- name: forwarded
-- Messages of a fresh claim whose headers hold the text, the name of the forwarding header: a mover put them here on
-- their way to another queue. Locks: none.
SELECT CAST(id AS text), seq, headers, body, NULL AS correlation_id, NULL AS reply_to_address
FROM {claimed}
WHERE claim_id = CAST(:claim_id AS uuid) AND strpos(headers, CAST(:text AS text)) > 0
ORDER BY seq

-- name: dead_letter
-- A message that cannot be read goes to the error queue unchanged, with its own id unless that exists there already (id
-- is a primary key here). Locks: the new row.
INSERT INTO {queue} (id, expires, headers, body)
SELECT
    CASE WHEN EXISTS (SELECT 1 FROM {queue} AS known WHERE known.id = c.id) THEN gen_random_uuid() ELSE c.id END,
    NULL, c.headers, c.body
FROM {claimed} AS c
WHERE c.claim_id = CAST(:claim_id AS uuid) AND c.seq = :row_version

-- name: drop_one
-- Takes one message out of a claim. Locks: the row.
DELETE FROM {claimed} WHERE claim_id = CAST(:claim_id AS uuid) AND seq = :row_version

-- name: drop
-- Deletes the messages of a completed claim. Locks: the rows it deletes.
DELETE FROM {claimed} WHERE claim_id = CAST(:claim_id AS uuid)

-- name: return
-- Puts the messages of a claim back into their queue, each in its old place. Locks: the new rows.
INSERT INTO {queue} (id, expires, headers, body, seq)
SELECT id, expires, headers, body, seq FROM {claimed} WHERE claim_id = CAST(:claim_id AS uuid) ORDER BY seq
