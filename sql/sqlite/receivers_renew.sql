-- Hold the places of an owner for longer; touches fewer rows than the owner thinks if it was late and they were freed.
-- Parameters: lease in milliseconds, queue, owner.
UPDATE {receivers}
SET LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + ?
WHERE Queue = ? AND Place > 0 AND Owner = ?
