-- Count one more failed attempt in a row, and tell how many there are. The range lock keeps two from inserting at once.
-- Parameters: queue, error.
DECLARE @queue nvarchar(400) = ?, @error nvarchar(2000) = ?;
UPDATE {failures} WITH (UPDLOCK, HOLDLOCK)
SET Failures = Failures + 1, LastError = @error
WHERE Queue = @queue;
IF @@ROWCOUNT = 0
    INSERT INTO {failures} (Queue, Failures, Since, LastError) VALUES (@queue, 1, SYSUTCDATETIME(), @error);
SELECT Failures FROM {failures} WHERE Queue = @queue;
