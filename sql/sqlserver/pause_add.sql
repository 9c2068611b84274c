-- Pause something, unless it is paused already: the first reason stays. The range lock keeps two from inserting at once.
-- Parameters: name, by, reason.
DECLARE @name nvarchar(200) = ?, @by nvarchar(200) = ?, @reason nvarchar(1000) = ?;
INSERT INTO {pauses} (Name, PausedAt, PausedBy, Reason)
SELECT @name, SYSUTCDATETIME(), @by, @reason
WHERE NOT EXISTS (SELECT 1 FROM {pauses} WITH (UPDLOCK, HOLDLOCK) WHERE Name = @name);
SELECT @@ROWCOUNT;
