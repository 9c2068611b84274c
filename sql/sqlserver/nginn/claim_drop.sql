-- Forget which messages belonged to a claim. Parameter: claim id.
DELETE FROM {claimed} WHERE claim_id = CAST(? AS uniqueidentifier);
SELECT @@ROWCOUNT;
