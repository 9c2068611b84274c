-- A message failed after its receive was rolled back, and is tried again later; not one that somebody else has taken
-- since. Parameters: milliseconds until then, what went wrong, its id.
UPDATE {queue}
SET subqueue = 'R', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'), retry_count = retry_count + 1,
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', ? / 1000.0)), error_info = ?
WHERE id = ? AND subqueue = 'I'
