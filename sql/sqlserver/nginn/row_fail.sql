-- A message failed for good after its receive was rolled back; not one that somebody else has taken since.
-- Parameters: what went wrong, its id.
UPDATE {queue} WITH (READPAST, ROWLOCK)
SET subqueue = 'F', last_processed = GETDATE(), retry_count = retry_count + 1, retry_time = GETDATE(), error_info = ?
WHERE id = ? AND subqueue = 'I';
SELECT @@ROWCOUNT;
