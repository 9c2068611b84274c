-- Take over the oldest claim of a queue whose lease ran out or that was released. The attempt is what fences the former
-- owner off. Parameters: owner, lease in milliseconds, queue.
-- A holder that ended without a word while it was at it may have been ended by its messages: that counts as a failure.
UPDATE {claims}
SET
    Owner = ?1,
    Attempt = Attempt + 1,
    ClaimedAt = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + ?2,
    Begun = 0,
    Failures = Failures + Begun,
    LastError = CASE WHEN Begun THEN Owner || ' ended while it was at it' ELSE LastError END
WHERE ClaimId = (
    SELECT ClaimId
    FROM {claims}
    WHERE Queue = ?3 AND LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
    ORDER BY FirstRowVersion
    LIMIT 1
)
RETURNING ClaimId, Queue, Owner, Attempt, Messages, Bytes, FirstRowVersion, Failures
