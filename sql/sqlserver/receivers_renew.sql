-- Hold the places of an owner for longer; touches fewer rows than the owner thinks if it was late and they were freed.
-- Parameters: lease in milliseconds, queue, owner.
UPDATE {receivers}
SET LeaseUntil = DATEADD(millisecond, CAST(? AS int), SYSUTCDATETIME())
WHERE Queue = ? AND Place > 0 AND Owner = ?;
SELECT @@ROWCOUNT;
