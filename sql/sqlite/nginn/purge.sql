-- Retention: delete processed messages that were due long enough ago, as the reference measures it. Parameters:
-- seconds, how many.
DELETE FROM {queue}
WHERE id IN (
    SELECT id FROM {queue}
    WHERE subqueue = 'X'
        AND retry_time <= strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', (-1000 * ?) / 1000.0))
    LIMIT ?
)
