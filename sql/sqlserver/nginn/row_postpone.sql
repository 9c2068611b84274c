-- A message that is being received has to wait for those before it. Parameters: milliseconds until the next look, its
-- id.
DECLARE @ms bigint = ?;
UPDATE {queue}
SET subqueue = 'R', last_processed = GETDATE(),
    retry_time = DATEADD(minute, @ms / 60000, DATEADD(millisecond, @ms % 60000, GETDATE()))
WHERE id = ?
