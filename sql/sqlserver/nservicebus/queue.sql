-- name: send
-- Inserts messages; the row is repeated for several, so it is short; identity values follow the order of the rows. The
-- columns are those that this table has: Recoverable was dropped from some, and is mandatory where it exists. Expires
-- is computed on the database's clock; -1 milliseconds means never. Locks: the new rows.
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
    SELECT
        CAST(v.Id AS uniqueidentifier) AS Id, CAST(1 AS bit) AS Recoverable,
        DATEADD(millisecond, NULLIF(v.Ttl, -1), GETUTCDATE()) AS Expires, v.Headers, v.Body
    FROM (
VALUES
(:id, :milliseconds, :headers, :body)
    ) AS v (Id, Ttl, Headers, Body)
) AS m

-- name: delay
-- Inserts delayed messages; the row is repeated for several. Due is computed on the database's clock, in days and
-- milliseconds because DATEADD takes 32-bit numbers only. The id is not stored: the mover gives a new one. Locks: the
-- new rows.
INSERT INTO {delayed} (Headers, Body, Due)
SELECT
    v.Headers, v.Body,
    DATEADD(
        millisecond, CAST(CAST(v.Delay AS bigint) % 86400000 AS int),
        DATEADD(day, CAST(CAST(v.Delay AS bigint) / 86400000 AS int), GETUTCDATE())
    )
FROM (
VALUES
(:id, :milliseconds, :headers, :body)
) AS v (Id, Delay, Headers, Body)

-- name: deliver
-- Moves a group of staged results into their queue, in the order in which they were staged. The columns are those that
-- this table has, see send. Locks: the new rows.
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
    SELECT
        Id, CAST(1 AS bit) AS Recoverable,
        DATEADD(millisecond, CAST(NULLIF(Milliseconds, -1) AS int), GETUTCDATE()) AS Expires, Headers, Body, Ordinal
    FROM {outbox}
    WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Task = :task AND GroupNumber = :group_number
) AS m
ORDER BY m.Ordinal;
SELECT @@ROWCOUNT;

-- name: deliver_delayed
-- Moves a group of staged results into a delayed table; the delay counts from now. See delay for the calculation.
-- Locks: the new rows.
INSERT INTO {delayed} (Headers, Body, Due)
SELECT
    Headers, Body,
    DATEADD(
        millisecond, CAST(Milliseconds % 86400000 AS int),
        DATEADD(day, CAST(Milliseconds / 86400000 AS int), GETUTCDATE())
    )
FROM {outbox}
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Task = :task AND GroupNumber = :group_number
ORDER BY Ordinal;
SELECT @@ROWCOUNT;

-- name: peek
-- How many messages wait, counted up to a limit and without a row lock. NOLOCK sees a delete before it is committed, so
-- messages in work do not count; it also sees sends that are not committed yet, which costs an empty receive at most.
-- Locks: none.
SELECT COUNT(*)
FROM (SELECT TOP (:limit) RowVersion FROM {queue} WITH (NOLOCK) ORDER BY RowVersion) AS waiting

-- name: browse
-- Messages after a row version that meet further conditions, left in the queue, without waiting for a lock; bodies if
-- they are asked for. Locks: shared while it reads; rows that others have locked are skipped.
SELECT TOP (:limit)
    m.id, m.row_version, m.expired, m.headers, m.body, m.correlation_id, m.reply_to_address, m.expires, m.body_size
FROM (
    SELECT
        q.Id AS id, LOWER(CAST(q.Id AS char(36))) AS id_text, q.RowVersion AS row_version,
        CASE WHEN q.Expires <= GETUTCDATE() THEN 1 ELSE 0 END AS expired,
        DATEDIFF_BIG(millisecond, '19700101', q.Expires) AS expires, q.Headers AS headers,
        CASE WHEN :with_body = 1 THEN q.Body END AS body, ISNULL(DATALENGTH(q.Body), 0) AS body_size,
        {correlation_id} AS correlation_id, {reply_to_address} AS reply_to_address
    FROM {queue} AS q WITH (READPAST, READCOMMITTEDLOCK)
) AS m
WHERE m.row_version > :after
ORDER BY m.row_version

-- name: status
-- A queue at a glance: waiting up to a limit, expired up to a limit, the oldest message's headers, database time.
-- Locks: shared while it reads; rows that others have locked are skipped.
SELECT
    (SELECT COUNT(*) FROM (SELECT TOP (:limit) RowVersion FROM {queue} WITH (NOLOCK) ORDER BY RowVersion) AS w),
    (SELECT COUNT(*)
        FROM (SELECT TOP (:limit) RowVersion FROM {queue} WITH (NOLOCK) WHERE Expires < GETUTCDATE()) AS e),
    (SELECT TOP (1) Headers FROM {queue} WITH (READPAST, READCOMMITTEDLOCK) ORDER BY RowVersion),
    DATEDIFF_BIG(millisecond, CAST('1970-01-01' AS datetime), GETUTCDATE())

-- name: issued
-- The last number that the queue gave to a message, for rates; null where the login may not see the table.
-- Locks: none.
SELECT CAST(IDENT_CURRENT({queue_text}) AS bigint)

-- name: receive
-- Deletes the oldest messages that no other process is receiving, and returns them (the caller sorts them), with 1 for
-- those that have expired. CorrelationId and ReplyToAddress are what version 1 wrote. The outer READPAST matters when
-- the plan scans. Locks: the rows it deletes; rows that others have locked are skipped.
DELETE q
OUTPUT
    deleted.Id, deleted.RowVersion, head.HasExpired, deleted.Headers, deleted.Body, {correlation_id}, {reply_to_address}
FROM {queue} AS q WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
    SELECT TOP (:limit) RowVersion, CASE WHEN Expires <= GETUTCDATE() THEN 1 ELSE 0 END AS HasExpired
    FROM {queue} WITH (UPDLOCK, READPAST, ROWLOCK)
    ORDER BY RowVersion
) AS head ON head.RowVersion = q.RowVersion

-- name: purge
-- Deletes a batch of expired messages, except for rows that a receiver holds. Locks: the rows it deletes; rows that
-- others have locked are skipped.
DELETE FROM {queue}
WHERE RowVersion IN (
    SELECT TOP (:limit) RowVersion FROM {queue} WITH (READPAST) WHERE Expires < GETUTCDATE() ORDER BY Expires
);
SELECT @@ROWCOUNT;

-- name: dead_letter
-- A row whose headers cannot be read goes to the error queue unchanged. Ids are not unique here, so it keeps its own.
-- Locks: the new row.
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
    SELECT
        CAST(:id AS uniqueidentifier) AS Id,
        CAST(1 AS bit) AS Recoverable,
        CAST(NULL AS datetime) AS Expires,
        CAST(:headers AS nvarchar(max)) AS Headers,
        CASE WHEN CAST(:body_is_null AS int) = 1 THEN NULL ELSE CAST(:body AS varbinary(max)) END AS Body
) AS m

-- name: count_delayed
-- How many messages wait for their time, counted up to a limit, and the milliseconds until the next is due. Locks:
-- shared while it reads; rows that others have locked are skipped.
SELECT
    (SELECT COUNT(*) FROM (SELECT TOP (:limit) RowVersion FROM {delayed} WITH (NOLOCK)) AS d),
    (SELECT DATEDIFF_BIG(millisecond, GETUTCDATE(), MIN(Due)) FROM {delayed} WITH (READPAST, READCOMMITTEDLOCK))

-- name: find_due
-- The head of the delayed messages that are due, with the headers of those that may be for another queue: all except
-- those that hold the text, the forwarding header exactly as this transport writes it for the queue itself. Compared as
-- bytes: faster, and `Orders` is not `orders` whatever the column's collation says. Locks: the rows it finds; rows that
-- others have locked are skipped.
SELECT h.RowVersion, CASE WHEN CHARINDEX(:text, h.Headers COLLATE Latin1_General_BIN2) > 0 THEN NULL ELSE h.Headers END
FROM (
    SELECT TOP (:limit) RowVersion, Headers, Due
    FROM {delayed} WITH (UPDLOCK, READPAST, ROWLOCK)
    WHERE Due <= GETUTCDATE()
    ORDER BY Due, RowVersion
) AS h
ORDER BY h.Due, h.RowVersion

-- name: move_due
-- Moves delayed messages that are due into the input queue, oldest due first. They go through a table variable because
-- OUTPUT INTO would number them in any order. Only Due has an index: the outer condition on it keeps the join away from
-- all rows that are not due yet. Locks: the rows it moves; rows that others have locked are skipped.
DECLARE @due TABLE (Headers nvarchar(max), Body varbinary(max), Due datetime, RowVersion bigint);
DELETE d
OUTPUT deleted.Headers, deleted.Body, deleted.Due, deleted.RowVersion
INTO @due (Headers, Body, Due, RowVersion)
FROM {delayed} AS d WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
    SELECT TOP (:limit) RowVersion
    FROM {delayed} WITH (UPDLOCK, READPAST, ROWLOCK)
    WHERE Due <= GETUTCDATE()
    ORDER BY Due, RowVersion
) AS head ON head.RowVersion = d.RowVersion
WHERE d.Due <= GETUTCDATE();
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
    SELECT
        NEWID() AS Id, CAST(1 AS bit) AS Recoverable, CAST(NULL AS datetime) AS Expires, Headers, Body, Due, RowVersion
    FROM @due
) AS m
ORDER BY m.Due, m.RowVersion;
SELECT @@ROWCOUNT;

-- name: take_delayed
-- Takes delayed messages out of their table, by the row versions that find_due gave: they go straight to another queue.
-- The deleted rows are returned, so that a message which another process moved meanwhile is not sent twice. Only Due
-- has an index: the condition on it keeps the join away from all rows that are not due yet. There is no id, so each
-- gets a new one. The row is repeated for several. Locks: the rows it deletes; rows that others have locked are
-- skipped.
DELETE d
OUTPUT deleted.RowVersion, NEWID(), deleted.Headers, deleted.Body
FROM {delayed} AS d WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
VALUES
(:key)
) AS v (RowVersion) ON v.RowVersion = d.RowVersion
WHERE d.Due <= GETUTCDATE()

-- name: discover
-- Tables of a schema that have a queue's shape. Locks: none.
SELECT CAST(t.name AS nvarchar(128))
FROM {sys}.tables AS t
INNER JOIN {sys}.schemas AS s ON s.schema_id = t.schema_id
WHERE s.name = :schema
    AND (
        SELECT COUNT(*) FROM {sys}.columns AS c
        WHERE c.object_id = t.object_id AND LOWER(c.name) IN ('id', 'expires', 'headers', 'body', 'rowversion')
    ) = 5
    AND NOT EXISTS (
        SELECT 1 FROM {sys}.columns AS c WHERE c.object_id = t.object_id AND LOWER(c.name) = 'claimid'
    )
ORDER BY t.name
