-- Retention: delete processed messages that were due long enough ago, as the reference measures it. Parameters:
-- seconds, how many.
DECLARE @seconds int = ?, @most int = ?;
DELETE TOP (@most)
FROM {queue} WITH (READPAST, ROWLOCK)
WHERE subqueue = 'X' AND retry_time <= DATEADD(second, -@seconds, GETDATE());
SELECT @@ROWCOUNT;
