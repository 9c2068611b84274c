-- A message failed for good after its receive was rolled back; not one that somebody else has taken since.
-- Parameters: what went wrong, its id.
UPDATE {queue}
SET subqueue = 'F', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'), retry_count = retry_count + 1,
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now'), error_info = ?
WHERE id = ? AND subqueue = 'I'
