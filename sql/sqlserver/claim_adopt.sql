-- Take over one claim for a new owner: released, lease over, or still exactly as the caller knows it, whose holder is dead.
-- Whoever comes second waits for the row and finds it changed. Parameters: owner, lease in milliseconds, and the fence
-- as the caller knows it: claim id, owner, attempt.
-- A holder that ended without a word may have been ended by its messages: that counts as a failure of theirs.
DECLARE @owner nvarchar(200) = ?, @lease int = ?;
UPDATE {claims}
SET
    Owner = @owner,
    Attempt = Attempt + 1,
    ClaimedAt = SYSUTCDATETIME(),
    LeaseUntil = DATEADD(millisecond, @lease, SYSUTCDATETIME()),
    Failures = Failures + CASE WHEN Owner IS NULL THEN 0 ELSE 1 END,
    LastError = CASE WHEN Owner IS NULL THEN LastError ELSE Owner + N' ended and left it behind' END
OUTPUT
    inserted.ClaimId, inserted.Queue, inserted.Owner, inserted.Attempt, inserted.Messages, inserted.Bytes,
    inserted.FirstRowVersion, inserted.Failures
WHERE ClaimId = CAST(? AS uniqueidentifier)
    AND (Owner IS NULL OR LeaseUntil <= SYSUTCDATETIME() OR (Owner = ? AND Attempt = ?));
