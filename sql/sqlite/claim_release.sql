-- Give a claim back: without an owner nobody can complete it, and the next receiver takes it over first.
-- Parameters: failures to add, claim id, owner, attempt.
UPDATE {claims}
SET Owner = NULL, LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), Failures = Failures + ?
WHERE ClaimId = ? AND Owner = ? AND Attempt = ?
