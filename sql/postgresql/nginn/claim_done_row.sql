-- One message of a claim is done without being processed: it expired, or went elsewhere. Parameters: claim id, its id.
UPDATE {queue} AS q
SET subqueue = 'X', last_processed = (now() AT TIME ZONE 'UTC'), retry_time = c.due
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = CAST(? AS uuid) AND c.id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease
