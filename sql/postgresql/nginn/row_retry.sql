-- A message failed after its receive was rolled back, and is tried again later; not one that somebody else has taken
-- since. Parameters: milliseconds until then, what went wrong, its id.
UPDATE {queue}
SET subqueue = 'R', last_processed = (now() AT TIME ZONE 'UTC'), retry_count = retry_count + 1,
    retry_time = (now() AT TIME ZONE 'UTC') + CAST(? AS bigint) * INTERVAL '1 millisecond', error_info = ?
WHERE id = ? AND subqueue = 'I'
