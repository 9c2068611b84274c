-- Give a claim back: without an owner nobody can complete it, and the next receiver takes it over first.
-- Parameters: failures to add, claim id, owner, attempt.
UPDATE {claims}
SET Owner = NULL, LeaseUntil = SYSUTCDATETIME(), Failures = Failures + CAST(? AS int)
WHERE ClaimId = CAST(? AS uniqueidentifier) AND Owner = ? AND Attempt = ?;
SELECT @@ROWCOUNT;
