-- One message of a claim is done without being processed: it expired, or went elsewhere. Parameters: claim id, its id.
UPDATE q
SET subqueue = 'X', last_processed = GETDATE(), retry_time = c.due
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(? AS uniqueidentifier) AND c.id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease;
SELECT @@ROWCOUNT;
