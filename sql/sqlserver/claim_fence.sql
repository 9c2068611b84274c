-- The fence: ends the claim if it is still this owner's.
-- Anything but one row means that it was lost. Parameters: claim id, owner, attempt.
DELETE FROM {claims}
WHERE ClaimId = CAST(? AS uniqueidentifier) AND Owner = ? AND Attempt = ?;
SELECT @@ROWCOUNT;
