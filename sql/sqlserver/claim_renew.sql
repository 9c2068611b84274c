-- Renew a lease; touches no row when the claim is no longer this owner's.
-- Parameters: lease in milliseconds, claim id, owner, attempt.
UPDATE {claims}
SET LeaseUntil = DATEADD(millisecond, CAST(? AS int), SYSUTCDATETIME())
WHERE ClaimId = CAST(? AS uniqueidentifier) AND Owner = ? AND Attempt = ?;
SELECT @@ROWCOUNT;
