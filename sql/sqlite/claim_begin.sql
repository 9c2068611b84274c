-- Note that the messages of a claim are being tried from now on, if it is still this owner's.
-- Parameters: claim id, owner, attempt.
UPDATE {claims} SET Begun = 1 WHERE ClaimId = ? AND Owner = ? AND Attempt = ?
