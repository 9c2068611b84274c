-- One message of a claim has to wait for those before it. Parameters: milliseconds until the next look, claim id, its
-- id.
UPDATE {queue} AS q
SET subqueue = 'R', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'),
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', ? / 1000.0))
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = ? AND c.id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease
