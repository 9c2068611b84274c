-- Expired messages are dropped, not processed. Parameter: claim id.
DELETE FROM {claimed} WHERE ClaimId = CAST(? AS uniqueidentifier) AND Expires <= GETUTCDATE();
SELECT @@ROWCOUNT;
