-- Take delayed messages out of their table, by the row versions that find_due gave: they go straight to another queue.
DELETE FROM {delayed}
WHERE RowVersion IN (
VALUES
(?)
)
RETURNING RowVersion, Id, Headers, Body
