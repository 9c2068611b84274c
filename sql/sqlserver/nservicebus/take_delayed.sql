-- Take delayed messages out of their table, by the row versions that find_due gave: they go straight to another queue.
-- What was taken comes back, so that a message which somebody else moved meanwhile is not sent twice. Only Due has an
-- index: the condition on it keeps the join away from all that is not due yet. There is no id, so each gets a new one.
DELETE d
OUTPUT deleted.RowVersion, NEWID(), deleted.Headers, deleted.Body
FROM {delayed} AS d WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
VALUES
(?)
) AS v (RowVersion) ON v.RowVersion = d.RowVersion
WHERE d.Due <= GETUTCDATE()
