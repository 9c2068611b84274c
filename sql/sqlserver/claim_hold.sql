-- Whether a claim is still its holder's, and will be until this transaction ends: the row stays locked against changes.
-- Parameters: claim id, owner, attempt.
SELECT 1
FROM {claims} WITH (REPEATABLEREAD, ROWLOCK)
WHERE ClaimId = CAST(? AS uniqueidentifier) AND Owner = ? AND Attempt = ?
