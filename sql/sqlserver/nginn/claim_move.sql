-- Claim, second half: move what was noted to subqueue R, with the end of the lease as its retry time. Parameter: claim
-- id.
UPDATE q
SET subqueue = 'R', retry_time = c.lease
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(? AS uniqueidentifier) AND q.subqueue = 'I';
SELECT @@ROWCOUNT;
