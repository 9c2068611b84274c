-- Every claim, oldest messages first, with what is left of its lease in milliseconds on the database's clock.
-- Parameters: queue, queue ('' = every queue).
SELECT
    ClaimId, Queue, Owner, Attempt, Messages, Bytes, FirstRowVersion,
    LeaseUntil - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - ClaimedAt,
    Failures, LastError
FROM {claims}
WHERE ? = '' OR Queue = ?
ORDER BY Queue, FirstRowVersion
