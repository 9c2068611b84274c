-- Count a failure of a claim's messages and keep what went wrong, if it is still this owner's.
-- Parameters: error, claim id, owner, attempt.
UPDATE {claims}
SET Begun = 0, Failures = Failures + 1, LastError = ?
WHERE ClaimId = ? AND Owner = ? AND Attempt = ?
RETURNING Failures
