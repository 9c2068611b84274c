-- Put the messages of a claim back as they were. Parameter: claim id.
UPDATE {queue} AS q
SET subqueue = 'I', retry_time = c.due
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease
