-- Take over one claim for a new owner: released, lease over, or still exactly as the caller knows it, whose holder is dead.
-- Whoever comes second waits for the row and finds it changed. Parameters: owner, lease in milliseconds, and the fence
-- as the caller knows it: claim id, owner, attempt.
-- A holder that ended without a word while it was at it may have been ended by its messages: that counts as a failure.
DECLARE @owner nvarchar(200) = ?, @lease int = ?;
UPDATE {claims}
SET
    Owner = @owner,
    Attempt = Attempt + 1,
    ClaimedAt = SYSUTCDATETIME(),
    LeaseUntil = DATEADD(millisecond, @lease, SYSUTCDATETIME()),
    Begun = 0,
    Failures = Failures + CASE WHEN Begun = 1 THEN 1 ELSE 0 END,
    LastError = CASE WHEN Begun = 1 THEN Owner + N' ended while it was at it' ELSE LastError END
OUTPUT
    inserted.ClaimId, inserted.Queue, inserted.Owner, inserted.Attempt, inserted.Messages, inserted.Bytes,
    inserted.FirstRowVersion, inserted.Failures
WHERE ClaimId = CAST(? AS uniqueidentifier)
    AND (Owner IS NULL OR LeaseUntil <= SYSUTCDATETIME() OR (Owner = ? AND Attempt = ?));
