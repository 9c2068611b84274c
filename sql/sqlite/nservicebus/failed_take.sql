-- Delete chosen messages of an error queue and return them (sorted by the caller); the write lock of the transaction
-- keeps others away. The row is repeated for several messages. Parameter: RowVersion.
DELETE FROM {queue}
WHERE RowVersion IN (
VALUES
(?)
)
RETURNING Id, RowVersion, Headers, Body, NULL, NULL
