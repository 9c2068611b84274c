-- name: last
-- The last row version of an error queue now: what fails later has a higher one. Locks: none.
SELECT max(RowVersion) FROM {queue}

-- name: take
-- Deletes chosen messages of an error queue and returns them (the caller sorts them); the write lock of the transaction
-- keeps others away. The row is repeated for several messages. Locks: the database, as every write.
DELETE FROM {queue}
WHERE RowVersion IN (
VALUES
(:row_version)
)
RETURNING CAST(Id AS TEXT), RowVersion, CAST(Headers AS TEXT), CAST(Body AS BLOB), NULL, NULL

-- name: drop
-- Deletes chosen messages of an error queue for good. The row is repeated for several messages. Locks: the database, as
-- every write.
DELETE FROM {queue}
WHERE RowVersion IN (
VALUES
(:row_version)
)
