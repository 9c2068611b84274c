-- A page of an error queue without the bodies, oldest first. Parameters: the RowVersion after which it begins, the last
-- one, how many.
SELECT Id, RowVersion, Headers, COALESCE(length(Body), 0), NULL, NULL
FROM {queue}
WHERE RowVersion > ? AND RowVersion <= ?
ORDER BY RowVersion
LIMIT ?
