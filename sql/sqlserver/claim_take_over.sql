-- Take over the oldest claim of a queue whose lease ran out or that was released. The attempt is what fences the former
-- owner off. Parameters: owner, lease in milliseconds, queue.
-- A holder that ended without a word while it was at it may have been ended by its messages: that counts as a failure.
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
    Begun = 0,
    Failures = Failures + CASE WHEN Begun = 1 THEN 1 ELSE 0 END,
    LastError = CASE WHEN Begun = 1 THEN Owner + N' ended while it was at it' ELSE LastError END
OUTPUT
    inserted.ClaimId, inserted.Queue, inserted.Owner, inserted.Attempt, inserted.Messages, inserted.Bytes,
    inserted.FirstRowVersion, inserted.Failures
WHERE ClaimId = @oldest;
