-- Take over the oldest claim of a queue whose lease ran out or that was released. The attempt is what fences the former
-- owner off. Parameters: owner, lease in milliseconds, queue.
-- A holder that ended without a word may have been ended by its messages: that counts as a failure of theirs.
DECLARE @owner nvarchar(200) = ?, @lease int = ?, @oldest uniqueidentifier;
SELECT TOP (1) @oldest = ClaimId
FROM {claims} WITH (UPDLOCK, READPAST, ROWLOCK)
WHERE Queue = ? AND LeaseUntil <= SYSUTCDATETIME()
ORDER BY FirstRowVersion;
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
WHERE ClaimId = @oldest;
