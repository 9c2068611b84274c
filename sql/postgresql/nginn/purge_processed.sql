-- Retention: delete processed messages that were processed long enough ago. Parameters: seconds, how many.
DELETE FROM {queue}
WHERE id = ANY (ARRAY(
    SELECT id FROM {queue}
    WHERE subqueue = 'X'
        AND last_processed <= (now() AT TIME ZONE 'UTC') + (-1000 * CAST(? AS bigint)) * INTERVAL '1 millisecond'
    LIMIT ? FOR UPDATE SKIP LOCKED
))
