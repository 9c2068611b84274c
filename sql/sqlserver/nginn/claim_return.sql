-- Put the messages of a claim back as they were. Parameter: claim id.
UPDATE q
SET subqueue = 'I', retry_time = c.due
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = CAST(? AS uniqueidentifier) AND q.subqueue = 'R' AND q.retry_time = c.lease;
SELECT @@ROWCOUNT;
