-- Count a failure of a claim's messages and keep what went wrong, if it is still this owner's.
-- Parameters: error, claim id, owner, attempt.
UPDATE {claims}
SET begun = false, failures = failures + 1, last_error = ?
WHERE claim_id = CAST(? AS uuid) AND owner = ? AND attempt = ?
RETURNING failures
