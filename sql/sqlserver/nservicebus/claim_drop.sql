-- Delete the messages of a completed claim. Parameter: claim id.
DELETE FROM {claimed} WHERE ClaimId = CAST(? AS uniqueidentifier);
SELECT @@ROWCOUNT;
