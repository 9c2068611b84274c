-- One message of a claim has to wait for those before it. Parameters: milliseconds until the next look, claim id, its
-- id.
UPDATE {queue} AS q
SET subqueue = 'R', last_processed = (now() AT TIME ZONE 'UTC'),
    retry_time = (now() AT TIME ZONE 'UTC') + CAST(? AS bigint) * INTERVAL '1 millisecond'
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = CAST(? AS uuid) AND c.id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease
