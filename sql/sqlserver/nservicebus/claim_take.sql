-- Claim: move the oldest messages that nobody else holds into the queue's .Claimed table, in one statement. Bounded by
-- messages and by bytes; a first message is always taken, or one large message would block the queue.
-- Parameters: most messages, most bytes, claim id.
DECLARE @messages int = ?, @bytes bigint = ?, @claim uniqueidentifier = ?;
DELETE q
OUTPUT
    @claim, deleted.Id, deleted.Expires, deleted.Headers, deleted.Body, deleted.RowVersion,
    {correlation_id}, {reply_to_address}
INTO {claimed} (ClaimId, Id, Expires, Headers, Body, RowVersion, CorrelationId, ReplyToAddress)
FROM {queue} AS q WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
    SELECT RowVersion, SUM(Bytes) OVER (ORDER BY RowVersion ROWS UNBOUNDED PRECEDING) - Bytes AS Before
    FROM (
        SELECT TOP (@messages)
            RowVersion, CAST(DATALENGTH(Headers) AS bigint) + ISNULL(DATALENGTH(Body), 0) AS Bytes
        FROM {queue} WITH (UPDLOCK, READPAST, ROWLOCK)
        ORDER BY RowVersion
    ) AS head
) AS sized ON sized.RowVersion = q.RowVersion
WHERE sized.Before < @bytes;
SELECT @@ROWCOUNT;
