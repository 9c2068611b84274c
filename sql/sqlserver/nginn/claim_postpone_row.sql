-- One message of a claim has to wait for those before it. Parameters: milliseconds until the next look, claim id, its
-- id.
DECLARE @ms bigint = ?;
UPDATE q
SET subqueue = 'R', last_processed = GETDATE(),
    retry_time = DATEADD(minute, @ms / 60000, DATEADD(millisecond, @ms % 60000, GETDATE()))
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(? AS uniqueidentifier) AND c.id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease;
SELECT @@ROWCOUNT;
