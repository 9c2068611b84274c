-- One message of a claim failed for good. Parameters: what went wrong, claim id, its id.
UPDATE {queue} AS q
SET subqueue = 'F', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now'), retry_count = q.retry_count + 1,
    retry_time = strftime('%Y-%m-%d %H:%M:%f', 'now'), error_info = ?
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = ? AND c.id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease
