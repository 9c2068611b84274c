-- Note that the messages of a claim are being tried from now on, if it is still this owner's.
-- Parameters: claim id, owner, attempt.
UPDATE {claims} SET begun = true WHERE claim_id = CAST(? AS uuid) AND owner = ? AND attempt = ?
