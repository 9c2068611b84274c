-- One message of a claim failed and is tried again later. Parameters: milliseconds until then, what went wrong, claim
-- id, its id.
UPDATE {queue} AS q
SET subqueue = 'R', last_processed = (now() AT TIME ZONE 'UTC'), retry_count = q.retry_count + 1,
    retry_time = (now() AT TIME ZONE 'UTC') + CAST(? AS bigint) * INTERVAL '1 millisecond', error_info = ?
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = CAST(? AS uuid) AND c.id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease
