-- Give a claim back: without an owner nobody can complete it, and the next receiver takes it over first.
-- Parameters: failures to add if it was at it, claim id, owner, attempt.
UPDATE {claims}
SET
    Owner = NULL,
    LeaseUntil = SYSUTCDATETIME(),
    Begun = 0,
    Failures = Failures + CASE WHEN Begun = 1 THEN CAST(? AS int) ELSE 0 END
WHERE ClaimId = CAST(? AS uniqueidentifier) AND Owner = ? AND Attempt = ?;
SELECT @@ROWCOUNT;
