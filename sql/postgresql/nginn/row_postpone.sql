-- A message that is being received has to wait for those before it. Parameters: milliseconds until the next look, its
-- id.
UPDATE {queue}
SET subqueue = 'R', last_processed = (now() AT TIME ZONE 'UTC'),
    retry_time = (now() AT TIME ZONE 'UTC') + CAST(? AS bigint) * INTERVAL '1 millisecond'
WHERE id = ?
