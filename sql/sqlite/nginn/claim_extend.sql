-- Hold the messages of a claim for longer: those that are still its own keep the mark that they have it in common with.
-- First half: the messages. Parameters: end of the lease, claim id.
UPDATE {queue} AS q
SET retry_time = ?
FROM {claimed} AS c
WHERE c.id = q.id AND c.claim_id = ? AND q.subqueue = 'R' AND q.retry_time = c.lease
