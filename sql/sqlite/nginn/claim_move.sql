-- Claim, second half: move what was noted to subqueue R, with the end of the lease as its retry time. Parameter: claim
-- id.
UPDATE {queue} AS q
SET subqueue = 'R', retry_time = c.lease
FROM {claimed} AS c
WHERE q.id = c.id AND c.claim_id = ? AND q.subqueue = 'I'
