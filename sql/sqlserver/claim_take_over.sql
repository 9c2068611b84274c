-- Take over the oldest claim of a queue whose lease ran out or that was released. The attempt is what fences the former
-- owner off. Parameters: owner, lease in milliseconds, queue.
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
    LeaseUntil = DATEADD(millisecond, @lease, SYSUTCDATETIME())
OUTPUT
    inserted.ClaimId, inserted.Queue, inserted.Owner, inserted.Attempt, inserted.Messages, inserted.Bytes,
    inserted.FirstRowVersion
WHERE ClaimId = @oldest;
