-- name: take
-- Claims: moves the oldest messages that no other process holds into the queue's .Claimed table, in one statement.
-- Bounded by messages and by bytes; the first message is always taken, or one large message would block the queue.
-- Locks: the rows it moves; rows that others have locked are skipped.
DECLARE @messages int = :messages, @bytes bigint = :bytes, @claim uniqueidentifier = :claim_id;
DELETE q
OUTPUT
    @claim, deleted.Id, deleted.Expires, deleted.Headers, deleted.Body, deleted.RowVersion,
    {correlation_id}, {reply_to_address}
INTO {claimed} (ClaimId, Id, Expires, Headers, Body, RowVersion, CorrelationId, ReplyToAddress)
FROM {queue} AS q WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
    SELECT RowVersion, SUM(Bytes) OVER (ORDER BY RowVersion ROWS UNBOUNDED PRECEDING) - Bytes AS Before
    FROM (
        SELECT TOP (@messages)
            RowVersion, CAST(DATALENGTH(Headers) AS bigint) + ISNULL(DATALENGTH(Body), 0) AS Bytes
        FROM {queue} WITH (UPDLOCK, READPAST, ROWLOCK)
        ORDER BY RowVersion
    ) AS head
) AS sized ON sized.RowVersion = q.RowVersion
WHERE sized.Before < @bytes;
SELECT @@ROWCOUNT;

-- name: drop_expired
-- Expired messages are dropped, not processed. Locks: the rows it deletes.
DELETE FROM {claimed} WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Expires <= GETUTCDATE();
SELECT @@ROWCOUNT;

-- name: parts
-- Cuts a claim into parts, limited in messages and bytes, so that a reader can read each of them at once. Locks:
-- shared while it reads.
SELECT MIN(RowVersion), MAX(RowVersion), COUNT(*), SUM(Bytes)
FROM (
    SELECT
        RowVersion, Bytes,
        (ROW_NUMBER() OVER (ORDER BY RowVersion) - 1) / CAST(:messages AS bigint) AS RowPart,
        (SUM(Bytes) OVER (ORDER BY RowVersion ROWS UNBOUNDED PRECEDING) - Bytes) / CAST(:bytes AS bigint) AS BytePart
    FROM (
        SELECT RowVersion, CAST(DATALENGTH(Headers) AS bigint) + ISNULL(DATALENGTH(Body), 0) AS Bytes
        FROM {claimed}
        WHERE ClaimId = CAST(:claim_id AS uniqueidentifier)
    ) AS sizes
) AS parts
GROUP BY RowPart, BytePart
ORDER BY 1

-- name: read
-- One part of a claim, in order. Locks: shared while it reads.
SELECT Id, RowVersion, Headers, Body, CorrelationId, ReplyToAddress
FROM {claimed}
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND RowVersion BETWEEN :first AND :last
ORDER BY RowVersion

-- name: read_headers
-- As read without the bodies, for readers that do not want them. Locks: shared while it reads.
SELECT Id, RowVersion, Headers, NULL AS Body, CorrelationId, ReplyToAddress
FROM {claimed}
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND RowVersion BETWEEN :first AND :last
ORDER BY RowVersion

-- name: sizes
-- Messages, bytes and first row version of a claim. Locks: shared while it reads.
SELECT
    COUNT(*), ISNULL(SUM(CAST(DATALENGTH(Headers) AS bigint) + ISNULL(DATALENGTH(Body), 0)), 0), MIN(RowVersion)
FROM {claimed}
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier)

-- name: figures
-- Which messages a claim holds, as figures to compare with what its holder read: how many, the smallest and largest of
-- their row versions, and the sum of the lower 32 bits, which does not overflow. Locks: shared while it reads.
SELECT COUNT(*), MIN(RowVersion), MAX(RowVersion), COALESCE(SUM(RowVersion & CAST(4294967295 AS bigint)), 0)
FROM {claimed}
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier)

-- name: middle
-- The last row version of a claim's first messages. The offset is how many of them stay (at least one), less one.
-- Locks: shared while it reads.
SELECT RowVersion
FROM {claimed}
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier)
ORDER BY RowVersion
OFFSET :offset ROWS FETCH NEXT 1 ROWS ONLY

-- name: split
-- Hands the messages of a claim after a row version to another claim. Locks: the rows it changes.
UPDATE {claimed}
SET ClaimId = CAST(:new_claim_id AS uniqueidentifier)
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND RowVersion > :last

-- name: separate
-- Hands a range of a claim's messages to another claim. Locks: the rows it changes.
UPDATE {claimed}
SET ClaimId = CAST(:new_claim_id AS uniqueidentifier)
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND RowVersion BETWEEN :first AND :last

-- name: marked
-- The messages of a claim whose headers hold a text. Locks: shared while it reads.
SELECT RowVersion
FROM {claimed}
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND CHARINDEX(:text, Headers) > 0
ORDER BY RowVersion

-- name: forwarded
-- Messages of a fresh claim whose headers hold the text, the name of the forwarding header: a mover put them here on
-- their way to another queue. Locks: shared while it reads.
SELECT Id, RowVersion, Headers, Body, CorrelationId, ReplyToAddress
FROM {claimed}
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND CHARINDEX(:text, Headers) > 0
ORDER BY RowVersion

-- name: dead_letter
-- A message that cannot be read goes to the error queue unchanged. Ids are not unique here, so it keeps its own. The
-- columns are those that the error queue has. Locks: the new row.
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
    SELECT Id, CAST(1 AS bit) AS Recoverable, CAST(NULL AS datetime) AS Expires, Headers, Body
    FROM {claimed}
    WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND RowVersion = :row_version
) AS m

-- name: drop_one
-- Takes one message out of a claim. Locks: the row.
DELETE FROM {claimed} WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND RowVersion = :row_version;
SELECT @@ROWCOUNT;

-- name: drop
-- Deletes the messages of a completed claim. Locks: the rows it deletes.
DELETE FROM {claimed} WHERE ClaimId = CAST(:claim_id AS uniqueidentifier);
SELECT @@ROWCOUNT;

-- name: return
-- Puts the messages of a claim back into their queue, at its end: writing an identity value takes a right that run-time
-- accounts do not have. What version 1 wrote into columns goes back into them. Locks: the new rows.
INSERT INTO {queue} ({all_columns})
SELECT {all_columns}
FROM (
    SELECT
        Id, CorrelationId, ReplyToAddress, CAST(1 AS bit) AS Recoverable, Expires, Headers, Body, RowVersion
    FROM {claimed}
    WHERE ClaimId = CAST(:claim_id AS uniqueidentifier)
) AS m
ORDER BY m.RowVersion
