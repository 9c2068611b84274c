-- Take one message out of a claim. Parameters: claim id, its id.
DELETE FROM {claimed} WHERE claim_id = CAST(? AS uniqueidentifier) AND id = ?;
SELECT @@ROWCOUNT;
