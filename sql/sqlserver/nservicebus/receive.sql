-- Delete the oldest messages that nobody else is receiving, and return them (sorted by the caller).
-- The database's clock comes along: a message has expired when Expires is not after it.
-- CorrelationId and ReplyToAddress are what version 1 wrote. The outer READPAST matters when the plan scans.
DELETE q
OUTPUT
    deleted.Id, deleted.RowVersion, deleted.Expires, GETUTCDATE(), deleted.Headers, deleted.Body,
    {correlation_id}, {reply_to_address}
FROM {queue} AS q WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
    SELECT TOP (?) RowVersion FROM {queue} WITH (UPDLOCK, READPAST, ROWLOCK) ORDER BY RowVersion
) AS head ON head.RowVersion = q.RowVersion
