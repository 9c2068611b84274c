-- Renew a lease; touches no row when the claim is no longer this owner's.
-- Parameters: lease in milliseconds, claim id, owner, attempt.
UPDATE {claims}
SET LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + ?
WHERE ClaimId = ? AND Owner = ? AND Attempt = ?
