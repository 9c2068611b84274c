-- The fence: ends the claim if it is still this owner's, and tells for how many milliseconds it was held.
-- Anything but one row means that it was lost. Parameters: claim id, owner, attempt.
DELETE FROM {claims}
WHERE ClaimId = ? AND Owner = ? AND Attempt = ?
RETURNING CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - ClaimedAt
