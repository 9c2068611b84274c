-- The fence: ends the claim if it is still this owner's, and tells for how many milliseconds it was held.
-- Anything but one row means that it was lost. Parameters: claim id, owner, attempt.
DELETE FROM {claims}
OUTPUT DATEDIFF_BIG(millisecond, deleted.ClaimedAt, SYSUTCDATETIME())
WHERE ClaimId = CAST(? AS uniqueidentifier) AND Owner = ? AND Attempt = ?
