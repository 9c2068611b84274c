-- One message of a claim failed for good. Parameters: what went wrong, claim id, its id.
UPDATE q
SET subqueue = 'F', last_processed = GETDATE(), retry_count = q.retry_count + 1,
    retry_time = GETDATE(), error_info = ?
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(? AS uniqueidentifier) AND c.id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease;
SELECT @@ROWCOUNT;
