-- Hold the messages of a claim for longer: those that are still its own. Parameters: lease in milliseconds, claim id.
DECLARE @lease datetime = DATEADD(millisecond, ?, GETDATE()), @claim uniqueidentifier = ?;
UPDATE q
SET retry_time = @lease
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN {claimed} AS c ON c.id = q.id
WHERE c.claim_id = @claim AND q.subqueue = 'R' AND q.retry_time = c.lease;
UPDATE {claimed} SET lease = @lease WHERE claim_id = @claim;
