-- Complete: messages that are still the claim's become processed ones, with the time at which they had been due.
-- Parameters: claim id, first and last id.
UPDATE q
SET subqueue = 'X', last_processed = GETDATE(), retry_time = c.due
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(? AS uniqueidentifier) AND c.id BETWEEN ? AND ? AND q.subqueue = 'R' AND q.retry_time = c.lease;
SELECT @@ROWCOUNT;
