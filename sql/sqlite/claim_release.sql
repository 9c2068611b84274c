-- Give a claim back: without an owner nobody can complete it, and the next receiver takes it over first.
-- Parameters: failures to add if it was at it, claim id, owner, attempt.
UPDATE {claims}
SET
    Owner = NULL,
    LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    Begun = 0,
    Failures = Failures + Begun * ?
WHERE ClaimId = ? AND Owner = ? AND Attempt = ?
