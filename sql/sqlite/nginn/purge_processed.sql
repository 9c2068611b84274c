-- Retention: delete processed messages that were processed long enough ago. Parameters: seconds, how many.
DELETE FROM {queue}
WHERE id IN (
    SELECT id FROM {queue}
    WHERE subqueue = 'X'
        AND last_processed <= strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', (-1000 * ?) / 1000.0))
    LIMIT ?
)
