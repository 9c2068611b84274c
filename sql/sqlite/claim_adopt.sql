-- Take over one claim for a new owner: released, lease over, or still exactly as the caller knows it, whose holder is dead.
-- Parameters: owner, lease in milliseconds, and the fence as the caller knows it: claim id, owner, attempt.
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
WHERE ClaimId = ?3
    AND (
        Owner IS NULL
        OR LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
        OR (Owner = ?4 AND Attempt = ?5)
    )
RETURNING ClaimId, Queue, Owner, Attempt, Messages, Bytes, FirstRowVersion, Failures
