-- A message that is being received has to wait for those before it. Parameters: milliseconds until the next look, its
-- id.
UPDATE {queue}
SET subqueue = 'R', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'),
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', ? / 1000.0))
WHERE id = ?
