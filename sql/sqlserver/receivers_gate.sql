-- Let one owner at a time take places of a queue, until the end of its transaction: two who count at once would both find
-- the last place free. Renewing, releasing and claiming do not wait for it. Parameter: queue.
DECLARE @queue nvarchar(400) = ?;
UPDATE {receivers} WITH (UPDLOCK, HOLDLOCK)
SET LeaseUntil = SYSUTCDATETIME()
WHERE Queue = @queue AND Place = 0;
IF @@ROWCOUNT = 0
    INSERT INTO {receivers} (Queue, Place, Owner, LeaseUntil) VALUES (@queue, 0, N'', SYSUTCDATETIME());
