-- Give back every claim that one owner still holds. Parameters: failures to add if it was at it, owner.
UPDATE {claims}
SET
    Owner = NULL,
    LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    Begun = 0,
    Failures = Failures + Begun * ?
WHERE Owner = ?
RETURNING ClaimId, Queue, Attempt, Messages, Bytes, FirstRowVersion, Failures
