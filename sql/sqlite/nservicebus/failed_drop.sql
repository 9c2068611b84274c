-- Delete chosen messages of an error queue for good. The row is repeated for several messages. Parameter: RowVersion.
DELETE FROM {queue}
WHERE RowVersion IN (
VALUES
(?)
)
