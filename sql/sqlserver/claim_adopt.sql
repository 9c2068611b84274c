-- Take over one claim for a new owner: released, lease over, or still exactly as the caller knows it, whose holder is dead.
-- Whoever comes second waits for the row and finds it changed. Parameters: owner, lease in milliseconds, and the fence
-- as the caller knows it: claim id, owner, attempt.
DECLARE @owner nvarchar(200) = ?, @lease int = ?;
UPDATE {claims}
SET
    Owner = @owner,
    Attempt = Attempt + 1,
    ClaimedAt = SYSUTCDATETIME(),
    LeaseUntil = DATEADD(millisecond, @lease, SYSUTCDATETIME())
OUTPUT
    inserted.ClaimId, inserted.Queue, inserted.Owner, inserted.Attempt, inserted.Messages, inserted.Bytes,
    inserted.FirstRowVersion
WHERE ClaimId = CAST(? AS uniqueidentifier)
    AND (Owner IS NULL OR LeaseUntil <= SYSUTCDATETIME() OR (Owner = ? AND Attempt = ?));
