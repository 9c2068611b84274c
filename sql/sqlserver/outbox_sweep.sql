-- Drop what was staged for claims that are no more: nobody will ever ask for it.
DELETE FROM {outbox} WHERE ClaimId NOT IN (SELECT ClaimId FROM {claims});
SELECT @@ROWCOUNT;
