-- One message of a claim failed for good. Parameters: what went wrong, claim id, its id.
UPDATE {queue} AS q
SET subqueue = 'F', last_processed = (now() AT TIME ZONE 'UTC'), retry_count = q.retry_count + 1,
    retry_time = (now() AT TIME ZONE 'UTC'), error_info = ?
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = CAST(? AS uuid) AND c.id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease
