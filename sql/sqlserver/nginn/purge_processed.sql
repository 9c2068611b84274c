-- Retention: delete processed messages that were processed long enough ago. Parameters: seconds, how many.
DECLARE @seconds int = ?, @most int = ?;
DELETE TOP (@most)
FROM {queue} WITH (READPAST, ROWLOCK)
WHERE subqueue = 'X' AND last_processed <= DATEADD(second, -@seconds, GETDATE());
SELECT @@ROWCOUNT;
