-- Claim, first half: note which messages are ready and held by nobody, bounded by messages and by bytes (a first one is
-- always taken); the update locks are kept until the transaction ends. Parameters: most messages, most bytes, claim id,
-- lease in milliseconds.
DECLARE @messages int = ?, @bytes bigint = ?, @claim uniqueidentifier = ?,
    @lease datetime = DATEADD(millisecond, ?, GETDATE());
INSERT INTO {claimed} (claim_id, id, bytes, due, lease)
SELECT @claim, id, bytes, retry_time, @lease
FROM (
    SELECT id, bytes, retry_time, SUM(bytes) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) - bytes AS before
    FROM (
        SELECT TOP (@messages)
            id, retry_time,
            CAST(ISNULL(DATALENGTH(msg_text), 0) AS bigint) + ISNULL(DATALENGTH(msg_headers), 0) AS bytes
        FROM {queue} WITH (UPDLOCK, READPAST, ROWLOCK)
        WHERE subqueue = 'I'
        ORDER BY {order}
    ) AS head
) AS sized
WHERE before < @bytes;
SELECT @@ROWCOUNT;
