-- Set what is left in a claim after part of it was split off or moved away, if it is still this owner's.
-- What is left has not failed yet.
-- Parameters: messages, bytes, first RowVersion, claim id, owner, attempt.
UPDATE {claims}
SET Messages = ?, Bytes = ?, FirstRowVersion = ?, Begun = 0, Failures = 0
WHERE ClaimId = CAST(? AS uniqueidentifier) AND Owner = ? AND Attempt = ?;
SELECT @@ROWCOUNT;
