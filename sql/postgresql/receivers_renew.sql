-- Hold the places of an owner for longer; touches fewer rows than the owner thinks if it was late and they were freed.
-- Parameters: lease in milliseconds, queue, owner.
UPDATE {receivers}
SET lease_until = clock_timestamp() + CAST(? AS bigint) * INTERVAL '1 millisecond'
WHERE queue = ? AND place > 0 AND owner = ?
