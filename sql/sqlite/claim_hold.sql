-- Whether a claim is still its holder's. One writer at a time: nobody can complete it before this transaction ends.
-- Parameters: claim id, owner, attempt.
SELECT 1 FROM {claims} WHERE ClaimId = ? AND Owner = ? AND Attempt = ?
