-- Take one message out of a claim. Parameters: claim id, RowVersion.
DELETE FROM {claimed} WHERE ClaimId = CAST(? AS uniqueidentifier) AND RowVersion = ?;
SELECT @@ROWCOUNT;
