-- Look at the oldest messages without taking them or waiting for a lock. Parameter: how many.
SELECT TOP (?)
    q.Id, q.RowVersion, q.Expires, GETUTCDATE(), q.Headers, q.Body, {correlation_id}, {reply_to_address}
FROM {queue} AS q WITH (READPAST, READCOMMITTEDLOCK)
ORDER BY q.RowVersion
