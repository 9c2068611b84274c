-- Give back every claim that one owner still holds. They are found without a lock, and then looked at again one by one:
-- a scan would wait for every completion that is under way. Parameters: failures to add if it was at it, owner.
DECLARE @failures int = ?, @owner nvarchar(200) = ?;
UPDATE {claims}
SET
    Owner = NULL,
    LeaseUntil = SYSUTCDATETIME(),
    Begun = 0,
    Failures = Failures + CASE WHEN Begun = 1 THEN @failures ELSE 0 END
OUTPUT
    inserted.ClaimId, inserted.Queue, inserted.Attempt, inserted.Messages, inserted.Bytes, inserted.FirstRowVersion,
    inserted.Failures
WHERE ClaimId IN (SELECT ClaimId FROM {claims} WITH (NOLOCK) WHERE Owner = @owner) AND Owner = @owner;
