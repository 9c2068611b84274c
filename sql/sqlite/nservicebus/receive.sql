-- Delete the oldest messages and return them; the write lock of the transaction keeps others away.
DELETE FROM {queue}
WHERE RowVersion IN (SELECT RowVersion FROM {queue} ORDER BY RowVersion LIMIT ?)
RETURNING
    Id, RowVersion, Expires, strftime('%Y-%m-%d %H:%M:%f', 'now'), Headers, Body, NULL, NULL
