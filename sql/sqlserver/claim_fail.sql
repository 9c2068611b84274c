-- Count a failure of a claim's messages and keep what went wrong, if it is still this owner's.
-- Parameters: error, claim id, owner, attempt.
UPDATE {claims}
SET Begun = 0, Failures = Failures + 1, LastError = ?
OUTPUT inserted.Failures
WHERE ClaimId = CAST(? AS uniqueidentifier) AND Owner = ? AND Attempt = ?;
