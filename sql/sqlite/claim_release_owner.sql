-- Give back every claim that one owner still holds. Parameter: owner.
UPDATE {claims}
SET Owner = NULL, LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
WHERE Owner = ?
RETURNING ClaimId, Queue, Attempt, Messages, Bytes, FirstRowVersion
