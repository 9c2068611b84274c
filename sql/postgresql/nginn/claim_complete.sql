-- Complete: messages that are still the claim's become processed ones, with the time at which they had been due.
-- Parameters: claim id, first and last id.
UPDATE {queue} AS q
SET subqueue = 'X', last_processed = (now() AT TIME ZONE 'UTC'), retry_time = c.due
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = CAST(? AS uuid) AND c.id BETWEEN ? AND ?
    AND q.subqueue = 'R' AND q.retry_time = c.lease
