-- Take over the oldest claim of a queue whose lease ran out or that was released. The attempt is what fences the former
-- owner off. Parameters: owner, lease in milliseconds, queue.
-- A holder that ended without a word may have been ended by its messages: that counts as a failure of theirs.
UPDATE {claims}
SET
    Owner = ?1,
    Attempt = Attempt + 1,
    ClaimedAt = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + ?2,
    Failures = Failures + CASE WHEN Owner IS NULL THEN 0 ELSE 1 END,
    LastError = CASE WHEN Owner IS NULL THEN LastError ELSE Owner || ' ended and left it behind' END
WHERE ClaimId = (
    SELECT ClaimId
    FROM {claims}
    WHERE Queue = ?3 AND LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
    ORDER BY FirstRowVersion
    LIMIT 1
)
RETURNING ClaimId, Queue, Owner, Attempt, Messages, Bytes, FirstRowVersion, Failures
