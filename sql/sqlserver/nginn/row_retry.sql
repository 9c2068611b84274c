-- A message failed after its receive was rolled back, and is tried again later; not one that somebody else has taken
-- since. Parameters: milliseconds until then, what went wrong, its id.
DECLARE @ms bigint = ?;
UPDATE {queue} WITH (READPAST, ROWLOCK)
SET subqueue = 'R', last_processed = GETDATE(), retry_count = retry_count + 1,
    retry_time = DATEADD(minute, @ms / 60000, DATEADD(millisecond, @ms % 60000, GETDATE())), error_info = ?
WHERE id = ? AND subqueue = 'I';
SELECT @@ROWCOUNT;
