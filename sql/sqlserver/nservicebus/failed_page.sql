-- A page of an error queue without the bodies, oldest first, passing over rows that somebody else holds.
-- Parameters: the RowVersion after which it begins, the last one, how many.
DECLARE @after bigint = ?, @last bigint = ?, @limit int = ?;
SELECT TOP (@limit)
    q.Id, q.RowVersion, q.Headers, ISNULL(DATALENGTH(q.Body), 0), {correlation_id}, {reply_to_address}
FROM {queue} AS q WITH (READPAST, READCOMMITTEDLOCK)
WHERE q.RowVersion > @after AND q.RowVersion <= @last
ORDER BY q.RowVersion
