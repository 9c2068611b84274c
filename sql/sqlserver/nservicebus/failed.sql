-- name: last
-- The last row version of an error queue now: what fails later has a higher one. Locks: shared while it reads; rows
-- that others have locked are skipped.
SELECT MAX(RowVersion) FROM {queue} WITH (READPAST, READCOMMITTEDLOCK)

-- name: take
-- Deletes chosen messages of an error queue and returns them (the caller sorts them), except for those that another
-- process holds. The row is repeated for several messages. Locks: the rows it deletes; rows that others have locked are
-- skipped.
DELETE q
OUTPUT deleted.Id, deleted.RowVersion, deleted.Headers, deleted.Body, {correlation_id}, {reply_to_address}
FROM {queue} AS q WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
VALUES
(:row_version)
) AS chosen (RowVersion) ON chosen.RowVersion = q.RowVersion

-- name: drop
-- Deletes chosen messages of an error queue for good, except for those that another process holds. The row is repeated
-- for several messages. Locks: the rows it deletes; rows that others have locked are skipped.
DELETE q
FROM {queue} AS q WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
VALUES
(:row_version)
) AS chosen (RowVersion) ON chosen.RowVersion = q.RowVersion;
SELECT @@ROWCOUNT;
