-- name: send
-- Inserts one message; the driver runs it once per row. Milliseconds to live, -1 = for ever. Locks: the database, as
-- every write.
INSERT INTO {queue} (Id, Expires, Headers, Body)
SELECT
    m.column1,
    CASE WHEN m.column2 <> -1
        THEN strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', m.column2 / 1000.0)) END,
    m.column3,
    m.column4
FROM (VALUES (:id, :milliseconds, :headers, :body)) AS m

-- name: delay
-- Inserts one delayed message; the driver runs it once per row. Milliseconds until it is due, negative for the past.
-- Locks: the database, as every write.
INSERT INTO {delayed} (Id, Due, Headers, Body)
SELECT
    m.column1,
    strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', m.column2 / 1000.0)),
    m.column3,
    m.column4
FROM (VALUES (:id, :milliseconds, :headers, :body)) AS m

-- name: deliver
-- Moves a group of staged results into their queue, in the order in which they were staged. Locks: the database, as
-- every write.
INSERT INTO {queue} (Id, Expires, Headers, Body)
SELECT
    Id,
    CASE WHEN Milliseconds <> -1
        THEN strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', Milliseconds / 1000.0)) END,
    Headers,
    Body
FROM {outbox}
WHERE ClaimId = :claim_id AND Task = :task AND GroupNumber = :group_number
ORDER BY Ordinal

-- name: deliver_delayed
-- Moves a group of staged results into a delayed table; the delay counts from now. Locks: the database, as every write.
INSERT INTO {delayed} (Id, Due, Headers, Body)
SELECT
    Id,
    strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', Milliseconds / 1000.0)),
    Headers,
    Body
FROM {outbox}
WHERE ClaimId = :claim_id AND Task = :task AND GroupNumber = :group_number
ORDER BY Ordinal

-- name: peek
-- How many messages wait, counted up to a limit; readers take no lock here. Locks: none.
SELECT count(*) FROM (SELECT 1 FROM {queue} ORDER BY RowVersion LIMIT :limit)

-- name: browse
-- Messages after a row version that meet further conditions, left in the queue; bodies if they are asked for.
-- Locks: none.
SELECT m.id, m.row_version, m.expired, m.headers, m.body, NULL, NULL, m.expires, m.body_size
FROM (
    SELECT
        lower(CAST(Id AS TEXT)) AS id, lower(CAST(Id AS TEXT)) AS id_text, RowVersion AS row_version,
        COALESCE(Expires <= strftime('%Y-%m-%d %H:%M:%f', 'now'), 0) AS expired,
        CAST(round((julianday(Expires) - 2440587.5) * 86400000) AS INTEGER) AS expires,
        CAST(Headers AS TEXT) AS headers, CASE WHEN :with_body = 1 THEN CAST(Body AS BLOB) END AS body,
        COALESCE(length(Body), 0) AS body_size
    FROM {queue}
) AS m
WHERE m.row_version > :after
ORDER BY m.row_version
LIMIT :limit

-- name: status
-- A queue at a glance: waiting up to a limit, expired up to a limit, the oldest message's headers, database time.
-- Locks: none.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM {queue} LIMIT :limit)),
    (SELECT count(*) FROM (SELECT 1 FROM {queue} WHERE Expires < strftime('%Y-%m-%d %H:%M:%f', 'now') LIMIT :limit)),
    (SELECT Headers FROM {queue} ORDER BY RowVersion LIMIT 1),
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)

-- name: issued
-- The last number that the queue gave to a message, for rates. Locks: none.
SELECT COALESCE((SELECT seq FROM sqlite_sequence WHERE name = {queue_name}), 0)

-- name: receive
-- Deletes the oldest messages and returns them, with 1 for those that have expired; the write lock of the transaction
-- keeps others away. The casts: a column holds any type here, whatever it was declared as. Locks: the database, as
-- every write.
DELETE FROM {queue}
WHERE RowVersion IN (SELECT RowVersion FROM {queue} ORDER BY RowVersion LIMIT :limit)
RETURNING
    CAST(Id AS TEXT), RowVersion, COALESCE(Expires <= strftime('%Y-%m-%d %H:%M:%f', 'now'), 0),
    CAST(Headers AS TEXT), CAST(Body AS BLOB), NULL, NULL

-- name: purge
-- Deletes a batch of expired messages. Locks: the database, as every write.
DELETE FROM {queue}
WHERE RowVersion IN (
    SELECT RowVersion FROM {queue} WHERE Expires < strftime('%Y-%m-%d %H:%M:%f', 'now') ORDER BY Expires LIMIT :limit
)

-- name: dead_letter
-- A row whose headers cannot be read goes to the error queue unchanged: its headers come as bytes, which may be no
-- UTF-8. Locks: the database, as every write.
INSERT INTO {queue} (Id, Expires, Headers, Body)
SELECT :id, NULL, CAST(:headers AS TEXT), CASE WHEN :body_is_null = 1 THEN NULL ELSE :body END

-- name: count_delayed
-- How many messages wait for their time, counted up to a limit, and the milliseconds until the next is due. Locks:
-- none.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM {delayed} LIMIT :limit)),
    (SELECT CAST(round((julianday(min(Due)) - julianday('now')) * 86400000) AS INTEGER) FROM {delayed})

-- name: find_due
-- The head of the delayed messages that are due, with the headers of those that may be for another queue: all except
-- those that hold the text, the forwarding header exactly as this transport writes it for the queue itself. Locks: none
-- of its own.
SELECT RowVersion, CASE WHEN instr(Headers, :text) = 0 THEN Headers END
FROM {delayed}
WHERE Due <= strftime('%Y-%m-%d %H:%M:%f', 'now')
ORDER BY Due, RowVersion
LIMIT :limit

-- name: move_due
-- Copies delayed messages that are due into the input queue, oldest due first; move_due_delete follows. Locks: the
-- database, as every write.
INSERT INTO {queue} (Id, Expires, Headers, Body)
SELECT Id, NULL, Headers, Body
FROM {delayed}
WHERE Due <= strftime('%Y-%m-%d %H:%M:%f', 'now')
ORDER BY Due, RowVersion
LIMIT :limit

-- name: move_due_delete
-- Deletes what move_due copied. Both run under one write lock, and the clock moves on between them, so the rows are
-- named by how many were copied, not by their time. Locks: the database, as every write.
DELETE FROM {delayed}
WHERE RowVersion IN (SELECT RowVersion FROM {delayed} ORDER BY Due, RowVersion LIMIT :limit)

-- name: take_delayed
-- Takes delayed messages out of their table, by the row versions that find_due gave: they go straight to another queue.
-- The row is repeated for several. Locks: the database, as every write.
DELETE FROM {delayed}
WHERE RowVersion IN (
VALUES
(:key)
)
RETURNING RowVersion, CAST(Id AS TEXT), CAST(Headers AS TEXT), CAST(Body AS BLOB)

-- name: discover
-- Tables that have a queue's shape; there is no schema here. Locks: none.
SELECT t.name
FROM sqlite_master AS t
WHERE t.type = 'table' AND :schema = ''
    AND (
        SELECT count(*) FROM pragma_table_xinfo(t.name) AS c
        WHERE lower(c.name) IN ('id', 'expires', 'headers', 'body', 'rowversion')
    ) = 5
    AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(t.name) AS c WHERE lower(c.name) = 'claimid')
ORDER BY t.name
