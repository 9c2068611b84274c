-- A message failed for good after its receive was rolled back; not one that somebody else has taken since.
-- Parameters: what went wrong, its id.
UPDATE {queue}
SET subqueue = 'F', last_processed = (now() AT TIME ZONE 'UTC'), retry_count = retry_count + 1,
    retry_time = (now() AT TIME ZONE 'UTC'), error_info = ?
WHERE id = ? AND subqueue = 'I'
