-- name: take
-- Claims, first half: copies the oldest messages into the queue's .Claimed table, bounded by messages and by bytes (the
-- first message is always taken). Locks: the database, as every write.
INSERT INTO {claimed} (ClaimId, Id, Expires, Headers, Body, RowVersion)
SELECT :claim_id, q.Id, q.Expires, q.Headers, q.Body, q.RowVersion
FROM {queue} AS q
JOIN (
    SELECT RowVersion, sum(Bytes) OVER (ORDER BY RowVersion ROWS UNBOUNDED PRECEDING) - Bytes AS Before
    FROM (
        SELECT RowVersion, length(CAST(Headers AS BLOB)) + COALESCE(length(Body), 0) AS Bytes
        FROM {queue}
        ORDER BY RowVersion
        LIMIT :messages
    )
) AS sized ON sized.RowVersion = q.RowVersion
WHERE sized.Before < :bytes

-- name: take_delete
-- Claims, second half: deletes what was copied. Locks: the database, as every write.
DELETE FROM {queue} WHERE RowVersion IN (SELECT RowVersion FROM {claimed} WHERE ClaimId = :claim_id)

-- name: drop_expired
-- Expired messages are dropped, not processed. Locks: the database, as every write.
DELETE FROM {claimed} WHERE ClaimId = :claim_id AND Expires <= strftime('%Y-%m-%d %H:%M:%f', 'now')

-- name: parts
-- Cuts a claim into parts, limited in messages and bytes, so that a reader can read each of them at once. Locks:
-- none.
SELECT min(RowVersion), max(RowVersion), count(*), sum(Bytes)
FROM (
    SELECT
        RowVersion, Bytes,
        (row_number() OVER (ORDER BY RowVersion) - 1) / :messages AS RowPart,
        (sum(Bytes) OVER (ORDER BY RowVersion ROWS UNBOUNDED PRECEDING) - Bytes) / :bytes AS BytePart
    FROM (
        SELECT RowVersion, length(CAST(Headers AS BLOB)) + COALESCE(length(Body), 0) AS Bytes
        FROM {claimed}
        WHERE ClaimId = :claim_id
    )
)
GROUP BY RowPart, BytePart
ORDER BY 1

-- name: read
-- One part of a claim, in order. The casts: a column holds any type here, whatever it was declared as. Locks: none.
SELECT CAST(Id AS TEXT), RowVersion, CAST(Headers AS TEXT), CAST(Body AS BLOB), NULL, NULL
FROM {claimed}
WHERE ClaimId = :claim_id AND RowVersion BETWEEN :first AND :last
ORDER BY RowVersion

-- name: read_headers
-- As read without the bodies, for readers that do not want them. Locks: none.
SELECT CAST(Id AS TEXT), RowVersion, CAST(Headers AS TEXT), NULL, NULL, NULL
FROM {claimed}
WHERE ClaimId = :claim_id AND RowVersion BETWEEN :first AND :last
ORDER BY RowVersion

-- name: sizes
-- Messages, bytes and first row version of a claim. Locks: none.
SELECT count(*), COALESCE(sum(length(CAST(Headers AS BLOB)) + COALESCE(length(Body), 0)), 0), min(RowVersion)
FROM {claimed}
WHERE ClaimId = :claim_id

-- name: figures
-- Which messages a claim holds, as figures to compare with what its holder read: how many, the smallest and largest of
-- their row versions, and the sum of the lower 32 bits, which does not overflow. Locks: none.
SELECT count(*), min(RowVersion), max(RowVersion), COALESCE(sum(RowVersion & 4294967295), 0)
FROM {claimed}
WHERE ClaimId = :claim_id

-- name: middle
-- The last row version of a claim's first messages. The offset is how many of them stay (at least one), less one.
-- Locks: none.
SELECT RowVersion FROM {claimed} WHERE ClaimId = :claim_id ORDER BY RowVersion LIMIT 1 OFFSET :offset

-- name: split
-- Hands the messages of a claim after a row version to another claim. Locks: the database, as every write.
UPDATE {claimed} SET ClaimId = :new_claim_id WHERE ClaimId = :claim_id AND RowVersion > :last

-- name: separate
-- Hands a range of a claim's messages to another claim. Locks: the database, as every write.
UPDATE {claimed} SET ClaimId = :new_claim_id WHERE ClaimId = :claim_id AND RowVersion BETWEEN :first AND :last

-- name: marked
-- The messages of a claim whose headers hold a text. Locks: none.
SELECT RowVersion FROM {claimed} WHERE ClaimId = :claim_id AND instr(Headers, :text) > 0 ORDER BY RowVersion

-- name: forwarded
-- Messages of a fresh claim whose headers hold the text, the name of the forwarding header: a mover put them here on
-- their way to another queue. Locks: none.
SELECT CAST(Id AS TEXT), RowVersion, CAST(Headers AS TEXT), CAST(Body AS BLOB), NULL, NULL
FROM {claimed}
WHERE ClaimId = :claim_id AND instr(Headers, :text) > 0
ORDER BY RowVersion

-- name: dead_letter
-- A message that cannot be read goes to the error queue unchanged. Locks: the database, as every write.
INSERT INTO {queue} (Id, Expires, Headers, Body)
SELECT Id, NULL, Headers, Body FROM {claimed} WHERE ClaimId = :claim_id AND RowVersion = :row_version

-- name: drop_one
-- Takes one message out of a claim. Locks: the database, as every write.
DELETE FROM {claimed} WHERE ClaimId = :claim_id AND RowVersion = :row_version

-- name: drop
-- Deletes the messages of a completed claim. Locks: the database, as every write.
DELETE FROM {claimed} WHERE ClaimId = :claim_id

-- name: return
-- Puts the messages of a claim back into their queue, each in its old place. Locks: the database, as every write.
INSERT INTO {queue} (Id, Expires, Headers, Body, RowVersion)
SELECT Id, Expires, Headers, Body, RowVersion FROM {claimed} WHERE ClaimId = :claim_id ORDER BY RowVersion
