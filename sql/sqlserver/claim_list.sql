-- Every claim, oldest messages first, with what is left of its lease in milliseconds on the database's clock.
-- Parameters: queue, queue ('' = every queue).
SELECT
    ClaimId, Queue, Owner, Attempt, Messages, Bytes, FirstRowVersion,
    DATEDIFF_BIG(millisecond, SYSUTCDATETIME(), LeaseUntil),
    DATEDIFF_BIG(millisecond, ClaimedAt, SYSUTCDATETIME()),
    Failures, LastError
FROM {claims}
WHERE ? = N'' OR Queue = ?
ORDER BY Queue, FirstRowVersion
